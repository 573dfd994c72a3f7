"""The proxy for an address, as the environment names it, and what is said where it cannot be used."""

from __future__ import annotations

import importlib.util
import os

import pytest

from rlm.errors import ConfigurationError
from rlm.providers import OpenAIProvider
from rlm.web.proxies import proxy_for
from tests.providers.sending import a_request

URL = "https://api.example.com/v1"


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.lower().endswith("_proxy") or name.startswith("SSL_CERT"):
            monkeypatch.delenv(name)


@pytest.mark.parametrize(
    ("set_to", "url", "found"),
    [
        ({}, URL, None),
        ({"HTTPS_PROXY": "http://p:3128"}, URL, "http://p:3128"),
        ({"https_proxy": "p:3128"}, URL, "http://p:3128"),
        ({"HTTP_PROXY": "http://p"}, URL, None),
        ({"HTTP_PROXY": "not a proxy at all://"}, URL, None),  # another scheme's fault is no fault here
        ({"ALL_PROXY": "http://p", "HTTPS_PROXY": "http://q"}, URL, "http://q"),
        ({"ALL_PROXY": "http://p"}, "http://api.example.com", "http://p"),
        ({"ALL_PROXY": "http://p"}, "http://127.0.0.1:80", None),
        ({"ALL_PROXY": "http://p"}, "http://[::1]:80", None),
        ({"ALL_PROXY": "  "}, URL, None),
    ],
)
def test_the_proxy_of_an_address(
    set_to: dict[str, str], url: str, found: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in set_to.items():
        monkeypatch.setenv(name, value)
    proxy = proxy_for(url)
    assert (proxy.url if proxy else None) == found


@pytest.mark.parametrize(
    ("entries", "url", "direct"),
    [
        ("*", URL, True),
        ("example.com", URL, True),
        (".example.com", URL, True),
        ("*.example.com", URL, True),
        ("API.EXAMPLE.COM.", URL, True),
        ("ample.com", URL, False),
        ("other.com, api.example.com", URL, True),
        ("other.com api.example.com", URL, True),
        ("https://api.example.com", URL, True),
        ("api.example.com:443", URL, True),
        ("api.example.com:8443", URL, False),
        ("10.0.0.0/8", "http://10.1.2.3/", True),
        ("10.0.0.0/8", "http://11.1.2.3/", False),
        ("10.1.2.3", "http://10.1.2.3/", True),
        ("2.3", "http://10.1.2.3/", False),
        ("fd00::/8", "http://[fd00::1]/", True),
        ("::1/128,fd00::1", "http://[fd00::1]/", True),
        ("[fd00::1]:80", "http://[fd00::1]/", True),
        ("http://[::1, [, ://, :, %, \N{SNOWMAN}, 1/2/3, .", URL, False),
    ],
)
def test_no_proxy_takes_the_usual_spellings_and_passes_over_what_it_cannot_read(
    entries: str, url: str, direct: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ALL_PROXY", "http://proxy:3128")
    monkeypatch.setenv("NO_PROXY", entries)
    assert (proxy_for(url) is None) is direct


@pytest.mark.anyio
@pytest.mark.parametrize(
    "value",
    ["ftp://p:1", "http://", "://", "http://[::1", "http://p:port", "http://p:99999", "http://p p:1", "http://p\x07:1",
     "http://us er:pa ss@p", "http://me:hunter2hunter2@p:port", "http://\N{SNOWMAN}:1", "http://p:0"],
)  # fmt: skip
async def test_a_malformed_proxy_is_a_configuration_error_that_names_the_variable_and_not_its_value(
    value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("https_proxy", value)
    to = OpenAIProvider("m", URL)
    with pytest.raises(ConfigurationError, match=r"https_proxy: .* or unset it") as caught:
        await to.send(a_request(), to.encode(a_request()))
    assert caught.value.kind == "invalid_proxy"
    assert caught.value.detail == {"variable": "https_proxy"}
    assert "hunter2" not in str(caught.value.to_dict())
    with pytest.raises(ConfigurationError, match="https_proxy"):
        async with to:
            pass


@pytest.mark.anyio
@pytest.mark.skipif(importlib.util.find_spec("socksio") is not None, reason="SOCKS is there")
async def test_a_socks_proxy_without_its_package_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", "socks5://127.0.0.1:1080")
    to = OpenAIProvider("m", URL)
    with pytest.raises(ConfigurationError, match=r"ALL_PROXY: a SOCKS proxy requires .*pip install socksio"):
        await to.send(a_request(), to.encode(a_request()))


@pytest.mark.anyio
async def test_a_certificate_file_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    from rlm.providers import connections

    connections._tls.cache_clear()
    monkeypatch.setenv("SSL_CERT_FILE", "/no/such/file.pem")
    to = OpenAIProvider("m", URL)
    with pytest.raises(ConfigurationError, match="SSL_CERT_FILE") as caught:
        await to.send(a_request(), to.encode(a_request()))
    assert caught.value.kind == "invalid_certificates"
    connections._tls.cache_clear()
