"""A run once more, without a model: replies and results come from its trace, everything else is done again.

Each request is compiled anew and must be, byte for byte, the one that was sent; where it is not, the replay ends and
says where the two runs part.
"""

from __future__ import annotations

import random
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Mapping
from contextvars import ContextVar
from typing import Any, NoReturn, TypeVar

import anyio.lowlevel

from rlm import __version__
from rlm.errors import ConfigurationError, ProviderError, RlmError, RunError, exception_text
from rlm.model.base import canonical_json, digest_of
from rlm.model.budget import Spent
from rlm.plan import Limit
from rlm.providers.base import NothingOpen, ProviderReply, ProviderRequest, Usage, Wire
from rlm.providers.prices import Price
from rlm.providers.retry import Retry
from rlm.sending.cancel import CancelToken
from rlm.sending.completion import Completion
from rlm.sending.results import error_of
from rlm.sending.run_budget import COUNTED, Reservation, RunBudget
from rlm.similarity.sensor_input import Heard
from rlm.tools.outcome import ToolOutcome
from rlm.trace.replay_barrier import BarrierPoint, ReplayBarrier
from rlm.trace.writer import READING, Record, Trace, request_key

T = TypeVar("T")

INTERRUPTED = ((RunError.phase, "timeout"), (RunError.phase, "cancelled"))

FRAME = ".0:frame"
"""Ends the call in which an agent that was given its plan has it checked."""

asking: ContextVar[str] = ContextVar("asking", default="")
"""The call for which a request is being sent."""

reserving: ContextVar[tuple[int, int] | None] = ContextVar("reserving", default=None)
"""Tokens in and out that the next request of that call may take."""


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
    """What happened at each call of the recorded run. All bodies are read, and verified, at once.

    The ledger decides nothing here: whom the budget refused, and how far each got who worked when the run was ended,
    depends on whose reply came first. It is in the record, and the same again.

    Raises: ConfigurationError ``missing_body``, ``changed_body``.
    """

    def __init__(self, record: Record) -> None:
        self.again: set[int] = set()
        """The identities of errors after which the recorded run tried again."""
        ends = record.of("end")
        errors = [row["error"] for row in ends if row["error"] is not None]
        kinds = [error["kind"] for error in errors if (error["phase"], error["kind"]) in INTERRUPTED]
        self.interruption = Interruption(kinds[0] if kinds else "")
        self._unfinished = not ends
        self._written_by = _other_version(record.events[0].get("version", "0.1"))
        self._halts = ReplayBarrier(self._stuck)
        self._sent = _by_call(record.of("request"))
        self._replies = _by_call(
            row if "error" in row else {**row, "reply": _shaped(record, row, _reply)} for row in record.of("reply")
        )
        self._left = {row["call"]: row["left"] for row in record.of("left")}
        self.sensor: str | None = record.value(record.events[0]["host"]).get("sensor")
        """The name of the recorded run's sensor. It is not asked again: ``heard`` is what it said."""
        self._heard = {
            row["call"]: {**row, **({"scores": record.value(row["scores"])} if "scores" in row else {})}
            for row in record.of("sensor")
        }
        self._windows = {row["role"] in ("leaf", "guest"): row["window"] for row in record.of("request")}
        self._outcomes = {row["call"]: _shaped(record, row, _outcome) for row in record.of("tool")}
        tools = (*record.of("interrupted"), *record.of("tool"))
        self._took = {row["call"]: _shaped(record, row, _spent) for row in tools}
        self._refused = {row["call"]: row for row in reversed(record.of("spent"))}
        self._cuts = {row["call"]: row for row in record.of("cut")}
        self._waited = {row["call"] for row in record.of("shared")}
        given = {call.removesuffix(FRAME) for call in self._left if call.endswith(FRAME)}
        self._born = {row["agent"] for row in record.of("agent")} | given
        self._came = {_step_call(row) for row in record.of("step") if row["what"] == "started"}
        self._done = {_step_call(row) for row in record.of("step") if row["what"] in ("bound", "failed")}

    def left(self, call: str, now: dict[str, Any]) -> dict[str, Any]:
        """What could still be taken at this place of the recorded run; ``now``, where it did not come there."""
        self._halts.moved()
        found: dict[str, Any] = self._left.get(call, now)
        return found

    def window(self, *, leaf: bool) -> int | None:
        """Tokens that the recorded model could hold."""
        return self._windows.get(leaf)

    # -- how far it came ----------------------------------------------------------------------------

    def moved(self) -> None:
        """A plan went on."""
        self._halts.moved()

    def limit(self, call: str) -> Limit | None:
        """Where the steps of a plan were stopped then; None where nothing stopped them."""
        row = self._cuts.get(call)
        if row is None:
            return None
        return Limit(row["step"], row["number"], {id: n for id, n in row["begun"].items() if isinstance(n, int)})

    async def behind(self, call: str) -> NoReturn:
        """Wait where the steps of a plan were stopped. Raises: what the budget refused them with."""
        row = self._cuts[call]
        problem = error_of(row["error"]) if "error" in row else None
        await self._halts.wait(call, problem, row["n"])

    def began(self, call: str) -> bool:
        """Whether the recorded run came to this step."""
        return call in self._came

    def waited(self, call: str) -> bool:
        """Whether this step waited then for another one that had the same sub-task."""
        return call in self._waited

    async def begins(self, call: str) -> None:
        """A step begins, where it did then. Raises: what the budget refused it with."""
        await self._refusal(call)
        if not self.began(call):
            await self._halts.wait(call)

    async def ends(self, call: str) -> None:
        """A step comes to its end, where it did then."""
        self._halts.moved()
        if call not in self._done:
            await self._halts.wait(call)

    async def turns(self, call: str) -> None:
        """An agent begins a turn, where it did then. Raises: what the budget refused it with."""
        await self._refusal(f"{call}:turn")
        if call not in self._left:
            await self._halts.wait(call)

    async def bears(self, call: str) -> None:
        """A child of a step begins, where it did then."""
        self._halts.moved()
        if call not in self._born:
            await self._halts.wait(call)

    async def closes(self) -> None:
        """The run has its value, unless it was ended from outside at the last moment."""
        if self.interruption.kind:
            await self._halts.wait("")

    async def asks(self, call: str) -> None:
        """A request is about to be sent, where it was then. Raises: what the budget refused it with."""
        await self._refusal(call)
        asking.set(call)
        if not self._sent[call]:
            await self._halts.wait(call)
        self._reserve(call)

    async def _refusal(self, call: str) -> None:
        self._halts.moved()
        row = self._refused.get(call)
        if row is None:
            return
        problem = error_of(row["error"])
        if getattr(problem, "terminal", False):
            await self._halts.wait(call, problem, row["n"])
        raise problem

    def _reserve(self, call: str) -> None:
        """The next request of the call may take what it could take then."""
        reserving.set(tuple(self._sent[call][0]["reserved"]) if self._sent[call] else None)

    def _stuck(self, halt: BarrierPoint) -> RlmError | None:
        """Nobody moves: what ended the recorded run from outside ends the replay; else the two part."""
        where = {"call": halt.call}
        if self.interruption.kind:
            self.interruption.cancel()
            return None
        if self._unfinished:
            return RunError("replay_differs", "the trace has no end: the recorded run came no further than here", where)
        return RunError("replay_differs", f"the recorded run did not come further than {halt.call}", where)

    # -- what was said ------------------------------------------------------------------------------

    async def answer(self, request: ProviderRequest) -> ProviderReply:
        """What was answered to this call's request. Raises: what was raised then; RunError ``replay_differs``."""
        call = asking.get()
        self._halts.moved()
        if not self._sent[call]:
            await self._halts.wait(call)
        sent = self._sent[call].popleft()
        if sent["request"] != request_key(request):
            where = {"call": call, "request": sent["request"]}
            what = f"the request at {call} is not the one that was sent then{self._written_by}"
            raise RunError("replay_differs", what, where)
        self._reserve(call)
        if not self._replies[call]:  # something ended the wait for it
            await self._halts.wait(call)
        row = self._replies[call].popleft()
        if "error" not in row:
            recorded: ProviderReply = row["reply"]
            return recorded
        problem = error_of(row["error"])
        if problem.detail.get("source") == "deadline":
            await self._halts.wait(call, problem, row["n"])
        if self._sent[call]:
            self.again.add(id(problem))
        raise problem

    async def heard(self, call: str) -> Heard:
        """What the sensor said of this request. Raises: what was raised then."""
        self._halts.moved()
        row = self._heard.get(call, {})
        if "error" in row:
            raise error_of(row["error"])
        if "scores" not in row:  # something ended the wait for it, or came before
            await self._halts.wait(call)
        await anyio.lowlevel.checkpoint()
        found: Heard = row["scores"]
        return found

    async def tool(self, call: str, arguments: Any) -> ToolOutcome:
        """What a tool gave at this call. Raises: RunError ``replay_differs``."""
        outcome = self._outcomes.get(call)
        if outcome is None:
            await self._halts.wait(call)
        edited = outcome.consent is not None and outcome.consent.edited
        if not edited and digest_of(arguments) != digest_of(outcome.arguments):
            raise RunError("replay_differs", f"{outcome.tool} was called with other arguments", {"call": call})
        return outcome

    def took(self, call: str) -> Spent:
        """What the handler's requests and children took during this call: they are not sent or made again."""
        return self._took.get(call, Spent())


def _by_call(rows: Iterable[dict[str, Any]]) -> defaultdict[str, deque[dict[str, Any]]]:
    found: defaultdict[str, deque[dict[str, Any]]] = defaultdict(deque)
    for row in rows:
        found[row["call"]].append(row)
    return found


def _reply(record: Record, row: Mapping[str, Any]) -> ProviderReply:
    return ProviderReply(**{**record.value(row["body"]), "usage": Usage(**row["usage"])})


def _outcome(record: Record, row: Mapping[str, Any]) -> ToolOutcome:
    return ToolOutcome(**record.value(row["outcome"]))


def _spent(_: Record, row: Mapping[str, Any]) -> Spent:
    return Spent(**row.get("took", {}))


def _shaped(record: Record, row: Mapping[str, Any], make: Callable[[Record, Mapping[str, Any]], T]) -> T:
    """What an event and its body say, made. Raises: ConfigurationError ``bad_trace`` where they have another shape."""
    try:
        return make(record, row)
    except ConfigurationError as problem:
        if problem.kind in READING:
            raise
        reason = problem.message
    except (TypeError, ValueError, RecursionError) as problem:
        reason = exception_text(problem, 200)
    raise record.bad(row, reason)


def _step_call(row: Mapping[str, Any]) -> str:
    """A step by the name that its calls have."""
    return f"{row['agent']}.{row['turn']}:{row['step']}"


class Recorded(RunBudget):
    """The account of a replay: what is taken is counted, and nothing is refused but turns, which are an agent's own."""

    def count(self, what: str) -> None:
        """As ``Account.count``."""
        if what == "turns":
            super().count(what)
        else:
            self._add(what, self._line())

    def reserve(self, input_tokens: int, most_output: int, price: Price | None) -> Reservation:
        """What the same request could take then, and one model call."""
        self.count("model_calls")
        taken_in, taken_out = reserving.get() or (input_tokens, most_output)
        return self._opened(Reservation(taken_in, taken_out, price, self._line()))

    def steps_left(self) -> None:
        """Any number: where the steps of a plan were stopped is in the record."""

    def left(self) -> dict[str, Any]:
        """The whole budget: what was left of it then is in the record."""
        caps = (*COUNTED.values(), "max_total_tokens")
        left = {cap: min(getattr(run_budget.budget, cap) for run_budget in self._line()) for cap in caps}
        steps = [run_budget.budget.max_steps for run_budget in self._line() if run_budget.budget.max_steps is not None]
        return {**left, "max_steps": min(steps)} if steps else left


def _other_version(version: str) -> str:
    """The end of a sentence, where another version of prolog-rlm wrote the trace; otherwise empty."""
    if version == __version__:
        return ""
    return f": version {version} wrote the trace, and version {__version__} writes requests with another text"


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
        return await self._replay.answer(request)
