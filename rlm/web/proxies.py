"""The proxy for an address, and the certificates to trust, as the environment names them.

httpx reads every proxy variable when a client is made, and raises for each unusable one, whatever the host. Here only
the variables for one address are read, and an error names the variable.
"""

from __future__ import annotations

import importlib.util
import ipaddress
import os
import re
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple, TypeVar
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies

from rlm.errors import ConfigurationError

T = TypeVar("T")

_SCHEMES = ("http", "https", "socks5", "socks5h")
_HOST = re.compile(r"[A-Za-z0-9._~:\-]+")
_CERTIFICATES = ("SSL_CERT_FILE", "SSL_CERT_DIR")


class Proxy(NamedTuple):
    """A proxy's URL, the variable that names it, and the password in it (empty if there is none)."""

    url: str
    variable: str
    password: str

    def __repr__(self) -> str:
        return f"<proxy of {self.variable}>"


def proxy_for(url: str) -> Proxy | None:
    """Return the proxy that the environment names for ``url``, or None for a direct connection.

    ``HTTPS_PROXY`` or ``HTTP_PROXY`` counts before ``ALL_PROXY``, and ``NO_PROXY`` before all. A loopback address, such
    as ``http://127.0.0.1:8000``, has no proxy. An unreadable entry of ``NO_PROXY`` matches no host.

    Raises:
        ConfigurationError: ``invalid_proxy``, which names the variable and never its value.
    """
    parts = urlsplit(url)
    host = (parts.hostname or "").rstrip(".")
    if not host or is_loopback(host):
        return None
    proxies = getproxies()
    scheme = parts.scheme if proxies.get(parts.scheme) else "all"
    value = (proxies.get(scheme) or "").strip()
    if not value or _bypassed(host, parts.port or {"https": 443}.get(parts.scheme, 80), proxies.get("no", "")):
        return None
    return _checked(value if "://" in value else f"http://{value}", _variable(scheme))


def is_loopback(host: str) -> bool:
    """Return whether ``host`` names this machine."""
    return host in ("localhost", "::1") or re.fullmatch(r"127(\.\d{1,3}){3}", host) is not None


def trusted(make: Callable[[], T]) -> T:
    """Return the TLS context that ``make`` builds from the environment.

    Raises:
        ConfigurationError: ``invalid_certificates``, if a variable such as ``SSL_CERT_FILE`` names an unreadable file
            or folder.
    """
    try:
        return make()
    except (OSError, ValueError) as problem:  # ssl.SSLError is an OSError
        named = [name for name in _CERTIFICATES if os.environ.get(name)]
        reason = getattr(problem, "strerror", None) or getattr(problem, "reason", None) or type(problem).__name__
    where = " or ".join(named) or "the certificates of this system"
    remedy = f"set {named[0]} to a readable PEM file or folder, or unset it" if named else "reinstall certifi"
    raise ConfigurationError(
        "invalid_certificates", f"{where} cannot be used: {reason}; {remedy}", {"variables": named}
    )


def made(proxy: Proxy | None, make: Callable[[str], T], invalid: type[Exception]) -> T | None:
    """Return an HTTP library's proxy for the URL, or None for a direct connection.

    Args:
        proxy: the proxy of the environment.
        make: the library's class of proxies.
        invalid: the library's exception for a URL that it cannot read.

    Raises:
        ConfigurationError: ``invalid_proxy``, which names the variable and never its value.
    """
    if proxy is None:
        return None
    with suppress(invalid, ValueError):  # raised outside: those exceptions hold the URL, and with it the password
        return make(proxy.url)
    raise _unusable(proxy, "its value is not a URL")


def _unusable(proxy: Proxy, reason: str) -> ConfigurationError:
    """Return the error for an unusable proxy."""
    remedy = f"set {proxy.variable} to a URL like http://proxy.example:3128, or unset it"
    return ConfigurationError("invalid_proxy", f"{proxy.variable}: {reason}; {remedy}", {"variable": proxy.variable})


def _variable(scheme: str) -> str:
    """Return the variable with the proxy of a scheme. Lower case counts first, as in Python's urllib."""
    for name in (f"{scheme}_proxy", f"{scheme}_proxy".upper()):
        if os.environ.get(name):
            return name
    return next(
        (name for name in os.environ if name.lower() == f"{scheme}_proxy" and os.environ[name]),
        f"the system's {scheme} proxy",
    )


def _checked(url: str, variable: str) -> Proxy:
    proxy = Proxy(url, variable, "")
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise _unusable(proxy, "its value is not a URL") from None
    if parts.scheme not in _SCHEMES:
        raise _unusable(proxy, f"scheme {parts.scheme[:20]!r} is not one of {', '.join(_SCHEMES)}")
    if not host:
        raise _unusable(proxy, "its value has no host")
    if not _HOST.fullmatch(host) or port == 0 or not url.isprintable() or " " in url:
        raise _unusable(proxy, "its value is not a URL")
    if parts.scheme.startswith("socks") and importlib.util.find_spec("socksio") is None:
        reason = "a SOCKS proxy requires the package 'socksio' (pip install socksio)"
        raise _unusable(proxy, reason)
    return Proxy(url, variable, unquote(parts.password or ""))


def _bypassed(host: str, port: int, entries: str) -> bool:
    return any(_matches(host.lower(), port, entry) for entry in re.split(r"[,\s]+", entries.lower()) if entry)


def _matches(host: str, port: int, entry: str) -> bool:
    """Return whether an entry of NO_PROXY covers a host.

    An entry is ``*``, a domain, ``host:port``, an address or a network, such as ``10.0.0.0/8``.
    """
    if entry == "*":
        return True
    name = entry.partition("://")[2] or entry
    address = _address(host)
    network = _network(name.strip("[]") if name.endswith("]") else name)
    if network is not None:
        return address is not None and address in network
    entry_name, colon, entry_port = name.rpartition(":")
    if colon and entry_port.isdigit():
        if int(entry_port) != port:
            return False
        name = entry_name.strip("[]")
    name = name.removeprefix("*").lstrip(".").rstrip(".")
    return bool(name) and (host == name or (address is None and host.endswith("." + name)))


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None


def _network(text: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network | None:
    try:
        return ipaddress.ip_network(text, strict=False)
    except ValueError:
        return None
