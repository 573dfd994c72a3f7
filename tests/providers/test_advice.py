"""What a refusal says of asking again, in headers, JSON and words; and what no wait can mend."""

from __future__ import annotations

import datetime
import ipaddress
import ssl
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from rlm.errors import ProviderError
from rlm.providers import OpenAIProvider, Retry
from rlm.providers.advice import MOST_SECONDS, named_wait
from tests.providers.sending import WIRES, failure, provider
from tests.support.loopback import Loopback, Reply, anthropic_fails, fails, replies_json

NOW = datetime.datetime.now(datetime.UTC)


@pytest.mark.parametrize(
    ("message", "seconds"),
    [
        ("Limit 15000, Used 11972, Requested 4351. Please try again in 2s. Visit https://x/y", 2),
        ("Please try again in 20s.", 20),
        ("Please retry after 1m3.2s", 63.2),
        ("try again in 500ms", 0.5),
        ("Please try again in 6m0s.", 360),
        ("Please retry in 34.07s.", 34.07),
        ("Try again after 2 minutes", 120),
        ("Please retry after 20 seconds.", 20),
        ("Please wait 1 minute and 5 seconds before retrying", 65),
        ("rate limited, retry in 1.5 min", 90),
        ("Used 100 in 60s window; try again in 3s", 3),
        ("Try again in 900000000000 hours", MOST_SECONDS),
        ("Rate limit of 20 requests per 3 s", None),
        ("try again at 10:40", None),
        ("Too many requests in 5 minutes", None),
        ("again " * 10_000, None),
        ("", None),
    ],
)
def test_waits_in_words(message: str, seconds: float | None) -> None:
    assert named_wait({}, None, message) == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7),
        ({"retry-after": " 7.5 "}, 7.5),
        ({"retry-after": "20s"}, 20),
        ({"retry-after-ms": "1500", "retry-after": "2"}, 1.5),
        ({"retry-after": "9" * 400}, MOST_SECONDS),
        ({"retry-after": "9" * 9000}, None),
        ({"retry-after": "1e999"}, None),
        ({"retry-after": "-5"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "Fri, 31 Dec 9999 23:59:59 GMT"}, MOST_SECONDS),
        ({"retry-after": "Fri, 31 Dec 99999 23:59:59 GMT"}, None),
        ({"retry-after": "Fri, 31 Dec 9999 23:59:59 -2359"}, MOST_SECONDS),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0),
        ({"retry-after": "٣"}, None),
        ({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "6m0s",
          "x-ratelimit-remaining-tokens": "9", "x-ratelimit-reset-tokens": "9m0s"}, 360),
        ({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "20ms"}, 0.02),
        ({"ratelimit-remaining": "0", "ratelimit-reset": "30"}, 30),
        ({"x-ratelimit-remaining-requests": "5", "x-ratelimit-reset-requests": "6m0s"}, None),
    ],
)  # fmt: skip
def test_waits_in_headers(headers: dict[str, str], seconds: float | None) -> None:
    assert named_wait(headers, None, "") == (None if seconds is None else pytest.approx(seconds, abs=2e-3))


@pytest.mark.parametrize(
    ("remaining", "reset", "written"),
    [
        ("anthropic-ratelimit-tokens-remaining", "anthropic-ratelimit-tokens-reset", datetime.datetime.isoformat),
        ("x-ratelimit-remaining", "x-ratelimit-reset", lambda moment: str(int(moment.timestamp()))),
        ("X-RateLimit-Remaining", "x-ratelimit-reset", lambda moment: str(int(moment.timestamp() * 1000))),
    ],
)
def test_a_reset_may_be_a_moment(remaining: str, reset: str, written: Callable[[datetime.datetime], str]) -> None:
    soon = datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=40)
    seconds = named_wait({remaining: "0", reset: written(soon)}, None, "")
    assert seconds is not None
    assert 0 < seconds <= 40


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ({"error": {"details": [{"@type": "google.rpc.RetryInfo", "retryDelay": "34s"}]}}, 34),
        ({"error": {"metadata": {"headers": {"Retry-After": "7"}}}}, 7),
        ({"error": {"retry_after_ms": 1500}}, 1.5),
        ({"retry_after": 3}, 3),
        ({"retry_after": 10**400}, MOST_SECONDS),
        ({"retry_after": float("inf")}, None),
        ({"retry_after": True}, None),
        ({"retry_after": [1]}, None),
    ],
)
def test_waits_in_json(value: Any, seconds: float | None) -> None:
    assert named_wait({}, value, "") == seconds


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("answer", "kind", "wait"),
    [
        (fails(429, "Please try again in 20s."), "rate_limited", 20.0),
        (fails(429, "no", retry_after="9" * 300), "rate_limited", MOST_SECONDS),
        (fails(429, "no", retry_after="Fri, 31 Dec 99999 23:59:59 GMT"), "rate_limited", None),
        (fails(429, "You exceeded your current quota. Please retry in 34.07s."), "rate_limited", 34.07),
        (fails(429, "You exceeded your current quota, please check your plan"), "quota_exhausted", None),
        (fails(429, "Request too large for m (TPM): Limit 30000, Requested 45000."), "request_too_large", None),
        (fails(429, "tokens (TPM): Limit 30000, Requested 45000"), "request_too_large", None),
        (fails(429, "tokens (TPM): Limit 30000, Used 29000, Requested 2000"), "rate_limited", None),
        (fails(429, "Too many tokens in this request"), "request_too_large", None),
        (fails(429, "prompt is too long: 250000 tokens"), "context_length", None),
        (fails(429, "Too many tokens, please wait before trying again."), "rate_limited", None),
        (fails(503, "overloaded", x_should_retry="false"), "server_error", None),
        (replies_json({"error": {"code": 429, "message": "try again in 3s"}}), "rate_limited", 3.0),
        (anthropic_fails(429, "rate_limit_error", "This request would exceed your rate limit"), "rate_limited", None),
    ],
)
async def test_what_a_refusal_means(loopback: Loopback, answer: Reply, kind: str, wait: float | None) -> None:
    loopback.script(answer)
    for wire in WIRES:
        error = await failure(provider(loopback, wire))
        assert (error.kind, error.detail.get("retry_after_seconds")) == (kind, wait)
        again = kind == "rate_limited"
        assert error.retryable is again


def test_a_wait_that_is_no_time_breaks_no_policy() -> None:
    import random

    for seconds in (float("nan"), float("inf"), -3, "soon", True, 10**400, [1]):
        detail = {"retry_after_seconds": seconds}
        error = ProviderError("rate_limited", "no", detail, status=429, retryable=True)
        delay = Retry().delay(1, error, random.Random(1), left=60)
        assert delay is None or 0 <= delay < 60


@pytest.fixture
def self_signed(tmp_path: Path) -> Iterator[str]:
    """An https server with a certificate that nobody vouches for: its base URL."""
    pytest.importorskip("cryptography")
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), 7, NOW, NOW + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    file = tmp_path / "server.pem"
    file.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        + certificate.public_bytes(serialization.Encoding.PEM)
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    server = HTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    server.handle_error = lambda *_: None  # type: ignore[method-assign]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    yield f"https://127.0.0.1:{server.server_address[1]}/v1"
    server.shutdown()
    server.server_close()


@pytest.mark.anyio
async def test_a_certificate_that_is_not_accepted_says_so_and_is_not_tried_again(self_signed: str) -> None:
    error = await failure(OpenAIProvider("m", self_signed))
    assert (error.kind, error.retryable, error.detail["unsent"]) == ("certificate", False, True)
    assert "self-signed certificate" in error.message.replace("self signed", "self-signed")
    assert "SSL_CERT_FILE" in error.message


@pytest.mark.anyio
async def test_an_address_that_speaks_no_tls_is_not_tried_again(loopback: Loopback) -> None:
    error = await failure(OpenAIProvider("m", loopback.url.replace("http://", "https://")))
    assert (error.kind, error.retryable) == ("tls", False)
    assert "is this the address of an https server?" in error.message
