"""The common part of providers over HTTP: one endpoint, one path, a reply that comes whole or as a stream."""

from __future__ import annotations

import abc
import os
from types import TracebackType
from typing import Any, ClassVar, Self

from rlm.errors import ProviderError
from rlm.providers.base import ProviderReply, ProviderRequest, Usage
from rlm.providers.credentials import Credentials, SecretSource
from rlm.providers.faults import code_and_message, kind_of, shown, status_of
from rlm.providers.http import Endpoint, Received, checked_base_url
from rlm.providers.wire import Assembly, FailedReply, NotAReply, OnText, TextSink
from rlm.web.secrets import NO_SECRETS, Secrets


def signed_in(
    base_url: str | None,
    api_key: SecretSource | None,
    api_key_variable: str | None,
    *,
    home: str,
    url_variable: str,
    key_variable: str,
) -> tuple[str, Credentials]:
    """Return the URL and the credentials of an endpoint. The vendor's key goes to the vendor's URL only.

    Args:
        base_url: the URL of the endpoint, or None.
        home: the vendor's own URL. Without a ``base_url``, it or the value of ``url_variable`` is used, and only then
            the key in ``key_variable``. At ``home`` a key is required.
    """
    url = base_url if base_url is not None else os.environ.get(url_variable) or home
    checked_base_url(url, "base_url" if base_url is not None else url_variable)
    required = api_key is not None or api_key_variable is not None
    if base_url is None and not required:
        api_key_variable, required = key_variable, url.rstrip("/") == home
    return url, Credentials(api_key, api_key_variable, required=required)


_UNREAD = ("connection", "timeout", "malformed_reply", "reply_too_large")
"""Kinds of failures without a known length of the answer."""


def _usage_of(received: Received | None) -> Any:
    value = None if received is None else received.value
    return value.get("usage") if isinstance(value, dict) else None


class RemoteProvider(abc.ABC):
    """One model at one endpoint. A subclass has the wire format: the path, the body and the reading of replies.

    Args:
        model: the model's name there.
        endpoint: the URL and its credentials.
        window: tokens of the model's context window, if the host knows them.
        enforces_schema: whether the endpoint holds replies to ``response_format``.
    """

    path: ClassVar[str]
    reply_is: ClassVar[str]

    def __init__(self, model: str, endpoint: Endpoint, *, window: int | None, enforces_schema: bool) -> None:
        self.name = endpoint.name
        self.model = model
        self.enforces_schema = enforces_schema
        self._endpoint = endpoint
        self._window = window

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.model!r} at {self._endpoint!r}>"

    async def window(self) -> int | None:
        """Return the host's number of tokens, or None; an endpoint of this kind does not report it."""
        return self._window

    async def send(self, request: ProviderRequest, body: bytes, on_text: OnText | None = None) -> ProviderReply:
        """Send ``body`` once and return the reply.

        Raises: ProviderError (its kinds: ``rlm.providers.faults``); ConfigurationError.
        """
        sink, assembly = TextSink(on_text), self._assembly()
        received: Received | None = None
        try:
            received = await self._answered(request, body, sink, assembly)
            reply = _scrubbed(self._decoded(received.value, received.request_id), received.secrets)
        except ProviderError as problem:
            failure = problem
            self._count(failure, problem.detail.pop("usage", None) or assembly.usage, assembly.text)
        except FailedReply as problem:
            failure = self._failed(problem, received)
        except (NotAReply, RecursionError) as problem:
            failure = self._malformed(str(problem), received.request_id if received else None)
            self._count(failure, _usage_of(received), "")
        else:
            sink.rest(reply.text)
            return reply
        del assembly, received  # the error keeps this frame, and pieces of a reply may hold secrets
        raise failure

    async def _answered(self, request: ProviderRequest, body: bytes, sink: TextSink, assembly: Assembly) -> Received:
        if request.delivery == "streamed":
            return await self._endpoint.stream(self.path, body, assembly, sink)
        return await self._endpoint.post(self.path, body)

    def _failed(self, problem: FailedReply, received: Received | None) -> ProviderError:
        """Return the error inside a reply. Another attempt is allowed unless the code forbids it."""
        code, message = code_and_message(problem.error)
        status = status_of(problem.error, 200)
        kind = kind_of(status, code, message)
        failure = self._endpoint.failure(
            "server_error" if kind == "provider_refused" else kind,
            f"the reply holds an error: {shown(message) or code or 'no message'}",
            status=200 if problem.text else status,  # a text is an answer, and has its cost
            secrets=received.secrets if received else NO_SECRETS,
            code=code and shown(code),
            request_id=received.request_id if received else None,
            partial_text=shown(problem.text) or None,
        )
        self._count(failure, problem.usage, problem.text)
        return failure

    def _count(self, problem: ProviderError, usage: Any, text: str) -> None:
        """Note the cost of a failed answer: the server's usage, and the bytes of its text."""
        read = self._usage(usage)
        if read != Usage():
            problem.detail["usage"] = read.model_dump(mode="json", exclude_defaults=True)
        if problem.status is not None and problem.status < 400 and problem.kind not in _UNREAD:
            problem.detail["received_bytes"] = len(text.encode("utf-8", "replace"))

    @abc.abstractmethod
    def _assembly(self) -> Assembly:
        """Return a new assembly for the events of a stream."""

    @abc.abstractmethod
    def _decoded(self, value: Any, request_id: str | None) -> ProviderReply:
        """Return the reply in a JSON value. Raises: NotAReply."""

    @staticmethod
    @abc.abstractmethod
    def _usage(usage: Any) -> Usage:
        """Return the figures in a ``usage`` of this wire format."""

    def _malformed(self, what: str, request_id: str | None) -> ProviderError:
        return self._endpoint.failure("malformed_reply", f"no {self.reply_is}: {shown(what)}", request_id=request_id)

    async def aclose(self) -> None:
        """Close the connections that ``async with`` keeps on this event loop."""
        await self._endpoint.close()

    async def __aenter__(self) -> Self:
        await self._endpoint.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._endpoint.close()


def _scrubbed(reply: ProviderReply, secrets: Secrets) -> ProviderReply:
    """Return the reply without secrets that were split across its pieces."""
    if not secrets:
        return reply
    calls = tuple(call.model_copy(update=secrets.scrub(call.model_dump())) for call in reply.tool_calls)
    texts = secrets.scrub(reply.model_dump(include={"text", "refusal", "stop_word", "model", "request_id"}))
    return reply.model_copy(update={**texts, "tool_calls": calls})
