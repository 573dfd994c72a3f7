"""What can go wrong with a request, in the words of ``ProviderError``.

Kinds, and whether the same request may succeed later (``retryable``):

    connection  timeout  rate_limited  server_error  malformed_reply         yes
    bad_request  context_length  request_too_large  unauthorized             no
    forbidden  not_found  quota_exhausted  redirected  reply_too_large       no
    provider_refused (any other refusal)  script_ended (a scripted one)      no
    local_missing  model_missing  model_invalid  local_start_timeout         no

``detail["unsent"]`` is true where not a byte of the request left. Where the ``status`` is below 400, or there is
none, an answer may have begun, and may have its cost.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any

from rlm.providers.credentials import redacted

EXCERPT = 500
_BY_STATUS = {
    400: "bad_request",
    401: "unauthorized",
    402: "quota_exhausted",
    403: "forbidden",
    404: "not_found",
    408: "timeout",
    413: "request_too_large",
    422: "bad_request",
    429: "rate_limited",
    504: "timeout",
}
_BY_CODE = {  # where a failure comes inside a reply, which has a status of its own
    "api_error": "server_error",
    "authentication_error": "unauthorized",
    "billing_error": "quota_exhausted",
    "invalid_request_error": "bad_request",
    "not_found_error": "not_found",
    "overloaded_error": "server_error",
    "permission_error": "forbidden",
    "rate_limit_error": "rate_limited",
    "rate_limit_exceeded": "rate_limited",
    "request_too_large": "request_too_large",
    "server_error": "server_error",
    "timeout_error": "timeout",
}
RETRYABLE = frozenset({"connection", "timeout", "rate_limited", "server_error", "malformed_reply"})
_TOO_LONG_CODES = frozenset({"context_length_exceeded", "exceed_context_size_error"})
_TOO_LONG = re.compile(r"(?i)context (length|window|size)|maximum context|prompt is too long|too many (input )?tokens")
_NO_QUOTA = frozenset({"insufficient_quota", "billing_hard_limit_reached", "billing_error"})
_NO_CREDIT = re.compile(r"(?i)credit balance is too low")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029]")


def shown(text: str) -> str:
    """The beginning of what the other side said, at most ``EXCERPT`` characters: nothing in it that looks like a
    key, no control characters."""
    flat = _CONTROL.sub(" ", redacted(text[: 2 * EXCERPT])).strip()
    return flat if len(flat) <= EXCERPT else flat[:EXCERPT] + "…"


def code_and_message(said: Any) -> tuple[str | None, str]:
    """What an ``error`` member says: a code (or type) and a message, in the usual spellings."""
    if isinstance(said, str):
        return None, said
    if not isinstance(said, dict):
        return None, ""
    code = next((str(said[key]) for key in ("code", "type") if isinstance(said.get(key), str)), None)
    return code, str(said.get("message") or "")


def kind_of(status: int, code: str | None, message: str) -> str:
    """The kind for a status (below 400: an error inside a reply), a provider's code and its message."""
    if code in _NO_QUOTA or (status == 400 and _NO_CREDIT.search(message)):
        return "quota_exhausted"
    refused = status in (400, 413, 422) or (status < 400 and code == "invalid_request_error")
    if code in _TOO_LONG_CODES or (refused and _TOO_LONG.search(message)):
        return "context_length"
    if status < 400 and code in _BY_CODE:
        return _BY_CODE[code]
    if status >= 500:
        return _BY_STATUS.get(status, "server_error")
    return _BY_STATUS.get(status, "bad_request" if status >= 400 else "provider_refused")


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds to wait, from ``Retry-After`` as seconds or as a date, or from ``retry-after-ms``; never negative."""
    fine = headers.get("retry-after-ms", "").strip()
    if re.fullmatch(r"\d{1,12}(\.\d+)?", fine):
        return float(fine) / 1000
    said = headers.get("retry-after", "").strip()
    if re.fullmatch(r"\d{1,9}(\.\d+)?", said):
        return float(said)
    try:
        when = parsedate_to_datetime(said)
    except (ValueError, IndexError, TypeError):
        return None
    if when.tzinfo is None:
        return None
    return max(0.0, (when - datetime.datetime.now(datetime.UTC)).total_seconds())
