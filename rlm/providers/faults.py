"""What can go wrong with a request, in the words of ``ProviderError``.

Kinds, and whether the same request may succeed later (``retryable``):

    connection  timeout  rate_limited  server_error  malformed_reply         yes
    bad_request  context_length  request_too_large  unauthorized             no
    forbidden  not_found  quota_exhausted  redirected  reply_too_large       no
    certificate  tls  proxy_refused  unsupported_encoding                    no
    provider_refused (any other refusal)  script_ended (a scripted one)      no
    reply_cut  reply_empty  reply_filtered  reply_refused  reply_unfinished  no
    local_missing  model_missing  model_invalid  local_start_timeout         no

``reply_...`` are replies that came and are no answer (``rlm.sending.incomplete``). ``detail["usage"]`` is what
a server said that a failed answer took, and ``detail["received_bytes"]`` how much text of it came.

``detail["unsent"]`` is true where not a byte of the request left. Where the ``status`` is below 400, or there is
none, an answer may have begun, and may have its cost.
"""

from __future__ import annotations

import re
import ssl
from collections.abc import Mapping
from typing import Any

from rlm.providers.advice import named_wait
from rlm.providers.credentials import redacted

EXCERPT = 500
_BY_STATUS = {
    400: "bad_request",
    401: "unauthorized",
    402: "quota_exhausted",
    403: "forbidden",
    404: "not_found",
    407: "proxy_refused",
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
_TOO_LONG_FOR_A_RATE = re.compile(r"(?i)context (length|window|size)|maximum context|prompt is too long")
_TOO_LARGE = re.compile(
    r"(?i)request (is |was )?too large|too many tokens in (the|this|one|your|a single) (request|prompt|input)"
    r"|tokens must be reduced|reduce (the|your) (length|size|number of tokens)"
)
_LIMIT_AND_REQUESTED = re.compile(r"(?i)\blimit:? ([0-9]{1,15})\b.{0,80}?\brequested:? ([0-9]{1,15})\b")
_NO_QUOTA = frozenset({"insufficient_quota", "billing_hard_limit_reached", "billing_error"})
_NO_CREDIT = re.compile(
    r"(?i)credit balance is too low|insufficient (credits?|balance|funds)|exceeded your current quota"
)
_TLS_REASONS = frozenset(
    {"WRONG_VERSION_NUMBER", "UNSUPPORTED_PROTOCOL", "HTTP_REQUEST", "TLSV1_ALERT_PROTOCOL_VERSION"}
    | {"NO_SHARED_CIPHER", "SSLV3_ALERT_HANDSHAKE_FAILURE", "TLSV13_ALERT_CERTIFICATE_REQUIRED"}
)
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


def status_of(error: Any, status: int) -> int:
    """The status of a failure: some gateways answer 200 and put the status inside, as the ``code``."""
    inner = str(error.get("code")) if isinstance(error, dict) else ""
    return int(inner) if status < 400 and re.fullmatch("[45][0-9][0-9]", inner) else status


def kind_of(status: int, code: str | None, message: str, wait: float | None = None) -> str:
    """The kind for a status (below 400: an error inside a reply), a provider's code, its message, and the seconds
    after which it wants to be asked again."""
    if code in _NO_QUOTA or (status in (400, 402, 403, 429) and wait is None and _NO_CREDIT.search(message)):
        return "quota_exhausted"
    refused = status in (400, 413, 422) or (status < 400 and code == "invalid_request_error")
    if code in _TOO_LONG_CODES or (refused and _TOO_LONG.search(message)):
        return "context_length"
    kind = _by_status(status, code)
    return _never_passes(message, wait) or kind if kind == "rate_limited" else kind


def advice(headers: Mapping[str, str], value: Any, message: str) -> tuple[float | None, bool]:
    """What a refusal says of asking again: after how many seconds (None: it does not say), and whether at all."""
    return named_wait(headers, value, message), headers.get("x-should-retry", "").strip().lower() != "false"


def tls_fault(problem: BaseException) -> tuple[str, str] | None:
    """The kind and the reason of a fault of TLS that another attempt meets again; None for every other fault."""
    cause: BaseException | None = problem
    for _ in range(12):
        if isinstance(cause, ssl.SSLCertVerificationError):
            return "certificate", (
                f"the certificate of the server is not accepted: {shown(cause.verify_message or str(cause))}; "
                "where the server uses a certificate of your own, name its authority in SSL_CERT_FILE"
            )
        if isinstance(cause, ssl.SSLError) and cause.reason in _TLS_REASONS:
            said = cause.reason.replace("_", " ").lower()
            return "tls", f"no TLS connection: {said}; is this the address of an https server?"
        if cause is None:
            break
        cause = cause.__cause__ or cause.__context__
    return None


def _by_status(status: int, code: str | None) -> str:
    if status < 400 and code in _BY_CODE:
        return _BY_CODE[code]
    if status >= 500:
        return _BY_STATUS.get(status, "server_error")
    return _BY_STATUS.get(status, "bad_request" if status >= 400 else "provider_refused")


def _never_passes(message: str, wait: float | None) -> str | None:
    """The kind of a refusal for its rate that no wait can mend: one request is more than the rate allows."""
    numbers = _LIMIT_AND_REQUESTED.search(message)
    if _TOO_LARGE.search(message) or (numbers and int(numbers[2]) > int(numbers[1])):
        return "request_too_large"
    return "context_length" if wait is None and _TOO_LONG_FOR_A_RATE.search(message) else None
