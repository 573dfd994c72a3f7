"""The failures of a request, as kinds of ``ProviderError``.

Kinds, and whether the same request may succeed later (``retryable``):

    connection  timeout  rate_limited  server_error  malformed_reply         yes
    bad_request  context_length  request_too_large  unauthorized             no
    forbidden  not_found  quota_exhausted  redirected  reply_too_large       no
    certificate  tls  proxy_refused  unsupported_encoding                    no
    provider_refused (any other refusal)  script_ended (a scripted one)      no
    reply_cut  reply_empty  reply_filtered  reply_refused  reply_unfinished  no
    local_missing  model_missing  model_invalid  local_start_timeout         no

``reply_...`` are replies that arrived and are no answer (``rlm.sending.incomplete``). ``detail["usage"]`` is the
server's usage of a failed answer, and ``detail["received_bytes"]`` the number of received bytes of its text.

``detail["unsent"]`` is true if no byte of the request was sent. With a ``status`` below 400, or without a status, an
answer may have begun, and may have its cost.
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
_BY_CODE = {  # for a failure inside a reply, which has a status of its own
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
    """Return the beginning of a server's text, at most ``EXCERPT`` characters, without keys and control characters."""
    flat = _CONTROL.sub(" ", redacted(text[: 2 * EXCERPT])).strip()
    return flat if len(flat) <= EXCERPT else flat[:EXCERPT] + "…"


def code_and_message(error: Any) -> tuple[str | None, str]:
    """Return the code (or type) and the message of an ``error`` member, in the usual spellings."""
    if isinstance(error, str):
        return None, error
    if not isinstance(error, dict):
        return None, ""
    code = next((str(error[key]) for key in ("code", "type") if isinstance(error.get(key), str)), None)
    return code, str(error.get("message") or "")


def status_of(error: Any, status: int) -> int:
    """Return the status of a failure. Some gateways answer 200 and put the status inside, as the ``code``."""
    inner = str(error.get("code")) if isinstance(error, dict) else ""
    return int(inner) if status < 400 and re.fullmatch("[45][0-9][0-9]", inner) else status


def kind_of(status: int, code: str | None, message: str, wait: float | None = None) -> str:
    """Return the kind of a failure from its status, code, message, and the wait that it asks for.

    A status below 400 stands for an error inside a reply.
    """
    if code in _NO_QUOTA or (status in (400, 402, 403, 429) and wait is None and _NO_CREDIT.search(message)):
        return "quota_exhausted"
    refused = status in (400, 413, 422) or (status < 400 and code == "invalid_request_error")
    if code in _TOO_LONG_CODES or (refused and _TOO_LONG.search(message)):
        return "context_length"
    kind = _by_status(status, code)
    return _never_passes(message, wait) or kind if kind == "rate_limited" else kind


def advice(headers: Mapping[str, str], value: Any, message: str) -> tuple[float | None, bool]:
    """Return the wait that a refusal asks for in seconds (or None), and whether another attempt may succeed."""
    return named_wait(headers, value, message), headers.get("x-should-retry", "").strip().lower() != "false"


def tls_fault(problem: BaseException) -> tuple[str, str] | None:
    """Return the kind and the reason of a lasting fault of TLS; None for every other fault."""
    cause: BaseException | None = problem
    for _ in range(12):
        if isinstance(cause, ssl.SSLCertVerificationError):
            return "certificate", (
                f"the certificate of the server is not accepted: {shown(cause.verify_message or str(cause))}; "
                "where the server uses a certificate of your own, name its authority in SSL_CERT_FILE"
            )
        if isinstance(cause, ssl.SSLError) and cause.reason in _TLS_REASONS:
            reason = cause.reason.replace("_", " ").lower()
            return "tls", f"no TLS connection: {reason}; is this the address of an https server?"
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
    """Return the kind of a rate refusal that no wait can mend: one request is larger than the rate allows."""
    numbers = _LIMIT_AND_REQUESTED.search(message)
    if _TOO_LARGE.search(message) or (numbers and int(numbers[2]) > int(numbers[1])):
        return "request_too_large"
    return "context_length" if wait is None and _TOO_LONG_FOR_A_RATE.search(message) else None
