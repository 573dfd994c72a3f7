"""A run once more, without a model: replies and results come from its trace, everything else is done again.

Each request is compiled anew and must be, byte for byte, the one that was sent; where it is not, the replay ends and
says where the two runs part.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict, deque
from collections.abc import Mapping
from typing import Any

import anyio
import anyio.lowlevel

from rlm.errors import ProviderError, RunError
from rlm.model.base import canonical_json, digest_of
from rlm.model.budget import Spent
from rlm.providers.base import NothingOpen, ProviderReply, ProviderRequest, Usage, Wire
from rlm.providers.prices import Price
from rlm.providers.retry import Retry
from rlm.runtime.cancel import CancelToken
from rlm.runtime.completion import Completion, error_of
from rlm.runtime.trace import Record, Trace, request_key
from rlm.tools.outcome import ToolOutcome

INTERRUPTED = ("timeout", "cancelled")


class Interruption(CancelToken):
    """Ends a replay as the recorded run was ended from outside: by its deadline or by its host."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind

    @property
    def cancelled(self) -> bool:
        """Whether it was the host."""
        return self._cancelled and self.kind == "cancelled"


class Replay:
    """What was answered, by request; and what tools gave, by call. All bodies are read, and verified, at once.

    Raises: ConfigurationError ``missing_body``, ``changed_body``.
    """

    def __init__(self, record: Record) -> None:
        self.again: set[int] = set()
        """The identities of errors after which the recorded run tried again."""
        self._replies: dict[str, deque[dict[str, Any]]] = defaultdict(deque)
        for row in record.of("reply"):
            said = {} if "error" in row else {"reply": record.value(row["body"])}
            self._replies[row["request"]].append({**row, **said})
        self._unanswered = Counter(row["request"] for row in record.of("request"))
        self._unanswered.subtract(row["request"] for row in record.of("reply"))
        errors = [row["error"] for row in record.of("end") if row["error"] is not None]
        kinds = [error["kind"] for error in errors if error["kind"] in INTERRUPTED]
        self.interruption = Interruption(kinds[0] if kinds else "")
        self._left = {row["call"]: row["left"] for row in record.of("left")}
        self._windows = {row["role"] in ("leaf", "guest"): row["window"] for row in record.of("request")}
        self._outcomes = {row["call"]: ToolOutcome(**record.value(row["outcome"])) for row in record.of("tool")}
        self._took: dict[str, dict[str, Any]] = {row["call"]: row.get("took", {}) for row in record.of("tool")}
        steps = (row for row in record.of("step") if (row.get("what"), row.get("op")) == ("started", "tool"))
        self._begun = {f"{row['agent']}.{row['turn']}:{row['step']}" for row in steps}

    def left(self, call: str, now: dict[str, Any]) -> dict[str, Any]:
        """What could still be taken at this place of the recorded run; ``now``, where it did not come there."""
        found: dict[str, Any] = self._left.get(call, now)
        return found

    def window(self, *, leaf: bool) -> int | None:
        """Tokens that the recorded model could hold."""
        return self._windows.get(leaf)

    def reply(self, request: ProviderRequest) -> ProviderReply:
        """What was answered to this very request. Raises: what was raised then; RunError ``replay_differs``."""
        key = request_key(request)
        waiting = self._replies.get(key)
        if not waiting:
            raise RunError("replay_differs", "this request was not sent in the recorded run", {"request": key})
        row = waiting.popleft()
        if "error" in row:
            problem = error_of(row["error"])
            if any(later["call"] == row["call"] for later in waiting):
                self.again.add(id(problem))
            raise problem
        return ProviderReply(**{**row["reply"], "usage": Usage(**row["usage"])})

    def ends_here(self, request: ProviderRequest) -> bool:
        """Whether this request never had its reply: something ended what waited for it. What ended the recorded run
        from outside ends the replay here; all else happens again by itself."""
        key = request_key(request)
        if self._replies.get(key) or self._unanswered[key] <= 0:
            return False
        if self.interruption.kind:
            self.interruption.cancel()
        return True

    async def tool(self, call: str, arguments: Any) -> ToolOutcome:
        """What a tool gave at this call; the end of the replay, where the recorded run was interrupted in it.

        Raises: RunError ``replay_differs``.
        """
        outcome = self._outcomes.get(call)
        if outcome is None and call in self._begun and self.interruption.kind:
            self.interruption.cancel()
            await anyio.sleep_forever()
        if outcome is None:
            raise RunError("replay_differs", f"no tool was called at {call} in the recorded run", {"call": call})
        edited = outcome.consent is not None and outcome.consent.edited
        if not edited and digest_of(arguments) != digest_of(outcome.arguments):
            raise RunError("replay_differs", f"{outcome.tool} was called with other arguments", {"call": call})
        return outcome

    def took(self, call: str) -> Spent:
        """What the handler's requests and children took during this call: they are not sent or made again."""
        return Spent(**self._took.get(call, {}))


def ended_alike(record: Record, now: Completion) -> Completion:
    """The result of a replay, if it is the recorded one; ``failed`` with ``replay_differs`` where it is not: what a
    run that was interrupted had bound may depend on what was fastest then."""
    for then in record.of("end"):
        kinds = [None if error is None else error["kind"] for error in (then["error"], now.error)]
        if (then["status"], then["value"], kinds[0]) != (now.status, Trace().body(now.value), kinds[1]):
            differs = RunError("replay_differs", "the replay did not end as the recorded run did", {"then": kinds[0]})
            if kinds[1] != differs.kind:
                return now.model_copy(update={"status": "failed", "error": differs.to_dict()})
    return now


class ReplayRetry(Retry):
    """Asks again where the recorded run did, and at once."""

    replay: Any

    def delay(self, attempt: int, error: ProviderError, rng: random.Random, *, left: float) -> float | None:
        """Nothing, or None where the recorded run gave up."""
        if id(error) not in self.replay.again:
            return None
        self.replay.again.discard(id(error))
        return 0.0


class ReplayProvider(NothingOpen):
    """A provider that answers from a trace, and sends nothing."""

    def __init__(self, said: Mapping[str, Any], replay: Replay, *, leaf: bool) -> None:
        self._replay = replay
        self._leaf = leaf
        self.name: str = said["name"]
        self.model: str = said["model"]
        self.wire: Wire = said["wire"]
        self.enforces_schema: bool = said["enforces_schema"]
        self.price = None if said["price"] is None else Price(**said["price"])

    async def window(self) -> int | None:
        """As the recorded one said."""
        return self._replay.window(leaf=self._leaf)

    def encode(self, request: ProviderRequest) -> bytes:
        """A body that is the same for the same request, whoever it is sent to."""
        return canonical_json(request.model_dump(mode="json")).encode()

    async def send(self, request: ProviderRequest, body: bytes, on_text: Any = None) -> ProviderReply:
        """The recorded reply to this request."""
        await anyio.lowlevel.checkpoint()
        if self._replay.ends_here(request):
            await anyio.sleep_forever()
        return self._replay.reply(request)
