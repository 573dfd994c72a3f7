"""One function sends.

Every provider request leaves through ``send``: here the deadline is applied and the exact bytes are recorded by
hash, and here is the place around which budget is reserved and settled. Nothing else in the library calls a
provider's ``send`` (a test reads the sources).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import anyio

from rlm.errors import ProviderError
from rlm.model.base import Noun
from rlm.providers.base import Provider, ProviderReply, ProviderRequest


class Sent(Noun):
    """One request that left: SHA-256 and size (bytes) of its body, who it went to."""

    digest: str
    size: int
    provider: str
    model: str


async def send(
    provider: Provider, request: ProviderRequest, *, deadline: float, record: Callable[[Sent], None] | None = None
) -> ProviderReply:
    """The provider's reply, or what went wrong, by ``deadline``.

    Args:
        deadline: an absolute time on the event loop's clock (``anyio.current_time()``), seconds. There is no
            request without one.
        record: called with what is about to leave, before it does.

    Raises: ProviderError (``timeout`` with ``detail["source"] == "deadline"`` when the time is over; no connection
    is left open); ConfigurationError for a request that cannot be written.
    """
    body = provider.encode(request)
    if anyio.current_time() >= deadline:
        raise _too_late(provider, "before the request was sent")
    if record is not None:
        digest = hashlib.sha256(body).hexdigest()
        record(Sent(digest=digest, size=len(body), provider=provider.name, model=request.model))
    with anyio.CancelScope(deadline=deadline) as scope:
        return await provider.send(request, body)
    assert scope.cancelled_caught
    raise _too_late(provider, "while the provider was answering")


def _too_late(provider: Provider, when: str) -> ProviderError:
    return ProviderError(
        "timeout", f"the deadline passed {when}", {"source": "deadline", "provider": provider.name}, retryable=False
    )
