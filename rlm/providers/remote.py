"""What providers over HTTP share: one endpoint, one path, a reply that comes whole or as a stream."""

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
from rlm.providers.wire import Assembly, FailedReply, NotAReply, OnText, Told
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
    """Where to send, and with which key: a key goes only where it belongs.

    Args:
        home: the vendor's own URL. It, or what ``url_variable`` says instead, is used where no ``base_url`` is given,
            and only there the key in ``key_variable`` counts; at home there must be one.
    """
    url = base_url if base_url is not None else os.environ.get(url_variable) or home
    checked_base_url(url, "base_url" if base_url is not None else url_variable)
    required = api_key is not None or api_key_variable is not None
    if base_url is None and not required:
        api_key_variable, required = key_variable, url.rstrip("/") == home
    return url, Credentials(api_key, api_key_variable, required=required)


_UNREAD = ("connection", "timeout", "malformed_reply", "reply_too_large")
"""Kinds of failures of which it is not known how much was written for them."""


def _usage_of(received: Received | None) -> Any:
    value = None if received is None else received.value
    return value.get("usage") if isinstance(value, dict) else None


class RemoteProvider(abc.ABC):
    """One model at one endpoint; a wire format says what it is called, and what is sent and read.

    Args:
        model: the model's name there.
        endpoint: where it is, and how to sign in.
        window: tokens of the model's context window, where the host knows them.
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
        """Tokens, as the host gave them; an endpoint of this kind does not say."""
        return self._window

    async def send(self, request: ProviderRequest, body: bytes, on_text: OnText | None = None) -> ProviderReply:
        """Send ``body`` once. Raises: ProviderError (its kinds: ``rlm.providers.faults``); ConfigurationError."""
        told, assembly = Told(on_text), self._assembly()
        received: Received | None = None
        try:
            received = await self._answered(request, body, told, assembly)
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
            told.rest(reply.text)
            return reply
        del assembly, received  # the frame hangs on the error, and pieces of a reply may hold what is scrubbed
        raise failure

    async def _answered(self, request: ProviderRequest, body: bytes, told: Told, assembly: Assembly) -> Received:
        if request.delivery == "streamed":
            return await self._endpoint.stream(self.path, body, assembly, told)
        return await self._endpoint.post(self.path, body)

    def _failed(self, problem: FailedReply, received: Received | None) -> ProviderError:
        """The error that stands inside a reply. It can be tried again unless its code says otherwise."""
        code, message = code_and_message(problem.error)
        status = status_of(problem.error, 200)
        kind = kind_of(status, code, message)
        failure = self._endpoint.failure(
            "server_error" if kind == "provider_refused" else kind,
            f"the reply holds an error: {shown(message) or code or 'no message'}",
            status=200 if problem.text else status,  # with a text, something was answered, and has its cost
            secrets=received.secrets if received else NO_SECRETS,
            code=code and shown(code),
            request_id=received.request_id if received else None,
            partial_text=shown(problem.text) or None,
        )
        self._count(failure, problem.usage, problem.text)
        return failure

    def _count(self, problem: ProviderError, usage: Any, text: str) -> None:
        """Note what an answer that failed took: its usage where the server said it, and how much text it had."""
        read = self._usage(usage)
        if read != Usage():
            problem.detail["usage"] = read.model_dump(mode="json", exclude_defaults=True)
        if problem.status is not None and problem.status < 400 and problem.kind not in _UNREAD:
            problem.detail["received_bytes"] = len(text.encode("utf-8", "replace"))

    @abc.abstractmethod
    def _assembly(self) -> Assembly:
        """What puts the events of a stream together."""

    @abc.abstractmethod
    def _decoded(self, value: Any, request_id: str | None) -> ProviderReply:
        """The reply in a JSON value. Raises: NotAReply."""

    @staticmethod
    @abc.abstractmethod
    def _usage(usage: Any) -> Usage:
        """The figures in a ``usage`` of this wire format."""

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
    """The reply without secrets that only the joining of its pieces made whole."""
    if not secrets:
        return reply
    calls = tuple(call.model_copy(update=secrets.scrub(call.model_dump())) for call in reply.tool_calls)
    texts = secrets.scrub(reply.model_dump(include={"text", "refusal", "stop_word", "model", "request_id"}))
    return reply.model_copy(update={**texts, "tool_calls": calls})
