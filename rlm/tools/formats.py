"""Checks of the ``format`` values of JSON Schema 2020-12 (section 7.3), by RE2 and the standard library.

``jsonschema`` checks most formats only if further packages are installed; without them every value passes silently.
The specification says that an unknown format is no constraint.
"""

from __future__ import annotations

import datetime
import ipaddress
from collections.abc import Callable
from urllib.parse import urlsplit

from rlm.tools.patterns import BadPattern, search

# RFC 3986, appendix A, and RFC 3987 for the characters beyond ASCII
_UCS = r"\x{A0}-\x{D7FF}\x{E000}-\x{FDCF}\x{FDF0}-\x{FFEF}\x{10000}-\x{EFFFD}"
_PRIVATE = r"\x{E000}-\x{F8FF}\x{F0000}-\x{FFFFD}\x{100000}-\x{10FFFD}"
_PCHAR = r"(?:[A-Za-z0-9._~!$&'()*+,;=:@{more}-]|%[0-9A-Fa-f]{{2}})"
_AUTHORITY = (
    r"(?:(?:[A-Za-z0-9._~!$&'()*+,;=:{more}-]|%[0-9A-Fa-f]{{2}})*@)?"
    r"(?:\[[0-9A-Fa-f:.]+\]|\[[vV][0-9A-Fa-f]+\.[A-Za-z0-9._~!$&'()*+,;=:-]+\]"
    r"|(?:[A-Za-z0-9._~!$&'()*+,;={more}-]|%[0-9A-Fa-f]{{2}})*)(?::[0-9]*)?"
)
_TAIL = rf"(?:\?(?:{_PCHAR}|[/?{{private}}])*)?(?:#(?:{_PCHAR}|[/?])*)?"
_ABSOLUTE = (
    rf"^[A-Za-z][A-Za-z0-9+.-]*:"
    rf"(?://{_AUTHORITY}(?:/{_PCHAR}*)*|/(?:{_PCHAR}+(?:/{_PCHAR}*)*)?|{_PCHAR}+(?:/{_PCHAR}*)*|){_TAIL}$"
)
_SEGMENT_WITHOUT_COLON = _PCHAR.replace(":@", "@")
_RELATIVE = (
    rf"^(?://{_AUTHORITY}(?:/{_PCHAR}*)*|/(?:{_PCHAR}+(?:/{_PCHAR}*)*)?"
    rf"|{_SEGMENT_WITHOUT_COLON}+(?:/{_PCHAR}*)*|){_TAIL}$"
)

_DATE = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
_TIME = r"^[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]+)?(?:[zZ]|[+-][0-9]{2}:[0-9]{2})$"
# RFC 3339, appendix A: no unit between two written units may be left out
_DURATION = r"^P(?:[0-9]+W|(?:{date}(?:T{time})?|T{time}))$".replace(
    "{date}", r"(?:[0-9]+D|[0-9]+M(?:[0-9]+D)?|[0-9]+Y(?:[0-9]+M(?:[0-9]+D)?)?)"
).replace("{time}", r"(?:[0-9]+H(?:[0-9]+M(?:[0-9]+S)?)?|[0-9]+M(?:[0-9]+S)?|[0-9]+S)")
_UUID = r"^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$"
_POINTER = r"^(?:/(?:[^/~]|~[01])*)*$"
_RELATIVE_POINTER = r"^(?:0|[1-9][0-9]*)(?:#|(?:/(?:[^/~]|~[01])*)*)$"
_ATOM = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~{more}-]+"
_LOCAL = rf'(?:{_ATOM}(?:\.{_ATOM})*|"(?:[^"\\\r\n]|\\[^\r\n])*")'
_LABEL = r"^[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?$"
# RFC 6570
_VARIABLE = r"(?:[A-Za-z0-9_]|%[0-9A-Fa-f]{2})(?:\.?(?:[A-Za-z0-9_]|%[0-9A-Fa-f]{2}))*(?:\*|:[1-9][0-9]{0,3})?"
_TEMPLATE = (
    r"^(?:[^\x00-\x20\x7f\"<>\\^`{|}%]|%[0-9A-Fa-f]{2}"
    rf"|\{{[+#./;?&=,!@|]?{_VARIABLE}(?:,{_VARIABLE})*\}})*$"
)


def _plain(pattern: str) -> str:
    return pattern.replace("{more}", "").replace("{private}", "").replace("{{", "{").replace("}}", "}")


def _international(pattern: str) -> str:
    return pattern.replace("{more}", _UCS).replace("{private}", _PRIVATE).replace("{{", "{").replace("}}", "}")


def _date(text: str) -> bool:
    return search(_DATE)(text) and _parses(datetime.date.fromisoformat, text)


def _time(text: str) -> bool:
    if not search(_TIME)(text):
        return False
    zone = text[8:].lstrip(".0123456789").upper()
    ahead, behind = (int(zone[1:3]), int(zone[4:])) if zone != "Z" else (0, 0)
    hour, minute, second = int(text[:2]), int(text[3:5]), int(text[6:8])
    if hour > 23 or minute > 59 or second > 60 or ahead > 23 or behind > 59:
        return False
    sign = -1 if zone[0] == "-" else 1
    # a leap second is the last of a day, in UTC
    return second < 60 or (hour * 60 + minute - sign * (ahead * 60 + behind)) % 1440 == 1439


def _date_time(text: str) -> bool:
    return text[10:11] in ("T", "t") and _date(text[:10]) and _time(text[11:])


def _ipv6(text: str) -> bool:
    return "%" not in text and _parses(ipaddress.IPv6Address, text)


def _hostname(text: str) -> bool:
    """Return whether the text is a host name of RFC 1123; labels that begin with ``xn--`` must be valid IDNA."""
    return 0 < len(text) <= 253 and all(search(_LABEL)(label) and _is_label(label) for label in text.split("."))


def _is_label(label: str) -> bool:
    if label[2:4] != "--":
        return True
    return label[:4].lower() == "xn--" and _idn_hostname(label)


def _idn_hostname(text: str) -> bool:
    import idna

    for dot in "\u3002\uff0e\uff61":
        text = text.replace(dot, ".")
    if text.endswith("."):
        return False
    try:
        idna.encode(text, strict=True)
    except (idna.IDNAError, UnicodeError):
        return False
    return True


def _mail(local: str, host: Callable[[str], bool]) -> Callable[[str], bool]:
    def check(text: str) -> bool:
        name, at, domain = text.rpartition("@")
        if not at or not search(f"^{local}$")(name):
            return False
        if domain.startswith("[") and domain.endswith("]"):
            inner = domain[1:-1]
            return _ipv6(inner[5:]) if inner[:5].lower() == "ipv6:" else _parses(ipaddress.IPv4Address, inner)
        return host(domain)

    return check


def _uri(pattern: str) -> Callable[[str], bool]:
    def check(text: str) -> bool:
        if not search(pattern)(text):
            return False
        bracketed = text.partition("[")[2].partition("]")[0]
        return not bracketed or bracketed[:1] in "vV" or _parses(urlsplit, text)

    return check


def _either(*checks: Callable[[str], bool]) -> Callable[[str], bool]:
    return lambda text: any(check(text) for check in checks)


def _regex(text: str) -> bool:
    return _parses(search, text)


def _parses(parse: Callable[[str], object], text: str) -> bool:
    try:
        parse(text)
    except (ValueError, BadPattern):
        return False
    return True


FORMATS: dict[str, Callable[[str], bool]] = {
    "date": _date,
    "time": _time,
    "date-time": _date_time,
    "duration": search(_DURATION),
    "email": _mail(_LOCAL.replace("{more}", ""), _hostname),
    "idn-email": _mail(_LOCAL.replace("{more}", _UCS), _either(_hostname, _idn_hostname)),
    "hostname": _hostname,
    "idn-hostname": _either(_hostname, _idn_hostname),
    "ipv4": lambda text: _parses(ipaddress.IPv4Address, text),
    "ipv6": _ipv6,
    "uri": _uri(_plain(_ABSOLUTE)),
    "uri-reference": _either(_uri(_plain(_ABSOLUTE)), _uri(_plain(_RELATIVE))),
    "iri": _uri(_international(_ABSOLUTE)),
    "iri-reference": _either(_uri(_international(_ABSOLUTE)), _uri(_international(_RELATIVE))),
    "uuid": search(_UUID),
    "uri-template": search(_TEMPLATE),
    "json-pointer": search(_POINTER),
    "relative-json-pointer": search(_RELATIVE_POINTER),
    "regex": _regex,
}
