"""Replay a run without a model: replies and results come from its trace, everything else is executed again.

Each request is compiled again and must equal the recorded one, byte for byte. At the first difference the replay ends
with ``replay_differs`` and names the place.
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
from rlm.plan import ReplayLimit
from rlm.providers.base import NothingOpen, ProviderReply, ProviderRequest, Usage, Wire
from rlm.providers.prices import Price
from rlm.providers.retry import Retry
from rlm.sending.cancel import CancelToken
from rlm.sending.completion import Completion
from rlm.sending.results import error_of
from rlm.sending.run_budget import COUNTED, Reservation, RunBudget
from rlm.similarity.sensor_input import SensorScores
from rlm.tools.outcome import ToolOutcome
from rlm.trace.replay_barrier import BarrierPoint, ReplayBarrier
from rlm.trace.writer import TRACE_PROBLEMS, Record, Trace, request_key

T = TypeVar("T")

INTERRUPTED = ((RunError.phase, "timeout"), (RunError.phase, "cancelled"))

FRAME = ".0:frame"
"""The suffix of the call in which an agent with a ready plan checks that plan."""

current_call: ContextVar[str] = ContextVar("current_call", default="")
"""The call of the request that is being sent."""

current_reservation: ContextVar[tuple[int, int] | None] = ContextVar("current_reservation", default=None)
"""Tokens in and out of the recorded reservation for the next request of that call."""


class Interruption(CancelToken):
    """Ends a replay as the recorded run was ended: by its deadline or by its host."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind

    @property
    def cancelled(self) -> bool:
        """Whether the host ended the recorded run."""
        return self._cancelled and self.kind == "cancelled"


class Replay:
    """The recorded results of each call. The constructor reads and verifies all bodies.

    The budget refuses nothing in a replay. Which branch the budget refused, and how far each branch came, depended on
    the order of replies. Both are in the record.

    Raises: ConfigurationError ``missing_body``, ``changed_body``.
    """

    def __init__(self, record: Record) -> None:
        self.retried_errors: set[int] = set()
        """The ``id()`` of each error after which the recorded run sent the request again."""
        ends = record.of("end")
        errors = [row["error"] for row in ends if row["error"] is not None]
        kinds = [error["kind"] for error in errors if (error["phase"], error["kind"]) in INTERRUPTED]
        self.interruption = Interruption(kinds[0] if kinds else "")
        self._unfinished = not ends
        self._written_by = _other_version(record.events[0].get("version", "0.1"))
        self._barrier = ReplayBarrier(self._on_standstill)
        self._call_notes: dict[str, dict[str, str]] = {row["agent"]: row.get("calls", {}) for row in record.of("agent")}
        self._requests = _by_call(record.of("request"))
        self._replies = _by_call(
            row if "error" in row else {**row, "reply": _read_row(record, row, _reply)} for row in record.of("reply")
        )
        self._left = {row["call"]: row["left"] for row in record.of("left")}
        self.sensor: str | None = record.value(record.events[0]["host"]).get("sensor")
        """The name of the recorded run's sensor; ``sensor_scores`` returns its recorded scores."""
        self._sensor_rows = {
            row["call"]: {**row, **({"scores": record.value(row["scores"])} if "scores" in row else {})}
            for row in record.of("sensor")
        }
        self._windows = {row["role"] in ("leaf", "guest"): row["window"] for row in record.of("request")}
        self._outcomes = {row["call"]: _read_row(record, row, _outcome) for row in record.of("tool")}
        tools = (*record.of("interrupted"), *record.of("tool"))
        self._tool_usages = {row["call"]: _read_row(record, row, _spent) for row in tools}
        self._refusals = {row["call"]: row for row in reversed(record.of("spent"))}
        self._cuts = {row["call"]: row for row in record.of("cut")}
        self._shared_calls = {row["call"] for row in record.of("shared")}
        planned = {call.removesuffix(FRAME) for call in self._left if call.endswith(FRAME)}
        self._started_agents = {row["agent"] for row in record.of("agent")} | planned
        self._started_steps = {_step_call(row) for row in record.of("step") if row["what"] == "started"}
        self._finished_steps = {_step_call(row) for row in record.of("step") if row["what"] in ("bound", "failed")}

    def left(self, call: str, now: dict[str, Any]) -> dict[str, Any]:
        """Return the recorded amounts left at this call; ``now`` if the record has none."""
        self._barrier.record_progress()
        left: dict[str, Any] = self._left.get(call, now)
        return left

    def window(self, *, leaf: bool) -> int | None:
        """Return the recorded window of the leaf model or the planner, in tokens."""
        return self._windows.get(leaf)

    # -- the end of the recording -------------------------------------------------------------------

    def record_progress(self) -> None:
        """Count one step of progress of a plan."""
        self._barrier.record_progress()

    def limit(self, call: str) -> ReplayLimit | None:
        """Return the step at which the recorded plan was stopped; None if it was not stopped."""
        row = self._cuts.get(call)
        if row is None:
            return None
        return ReplayLimit(row["step"], row["number"], {id: n for id, n in row["begun"].items() if isinstance(n, int)})

    async def wait_at_limit(self, call: str) -> NoReturn:
        """Block at the step where the recorded plan was stopped. Raises: the recorded refusal of the budget."""
        row = self._cuts[call]
        problem = error_of(row["error"]) if "error" in row else None
        await self._barrier.wait(call, problem, row["n"])

    def was_started(self, call: str) -> bool:
        """Whether the recorded run started this step."""
        return call in self._started_steps

    def was_shared(self, call: str) -> bool:
        """Whether this step waited for another step with the same sub-task in the recorded run."""
        return call in self._shared_calls

    async def begin_step(self, call: str) -> None:
        """Begin a step, or block if the recorded run did not. Raises: the recorded refusal of the budget."""
        await self._refusal(call)
        if not self.was_started(call):
            await self._barrier.wait(call)

    async def end_step(self, call: str) -> None:
        """End a step, or block if the recorded run did not."""
        self._barrier.record_progress()
        if call not in self._finished_steps:
            await self._barrier.wait(call)

    async def begin_turn(self, call: str) -> None:
        """Begin an agent's turn, or block if the recorded run did not. Raises: the recorded refusal of the budget."""
        await self._refusal(f"{call}:turn")
        if call not in self._left:
            await self._barrier.wait(call)

    async def begin_child(self, call: str) -> None:
        """Begin the child of a step, or block if the recorded run did not."""
        self._barrier.record_progress()
        if call not in self._started_agents:
            await self._barrier.wait(call)

    async def end_run(self) -> None:
        """End the run, or block if the recorded run was interrupted before its end."""
        if self.interruption.kind:
            await self._barrier.wait("")

    async def begin_request(self, call: str) -> None:
        """Prepare a request, or block if the recorded run did not send it. Raises: the recorded refusal of the
        budget."""
        await self._refusal(call)
        current_call.set(call)
        if not self._requests[call]:
            await self._barrier.wait(call)
        self._reserve(call)

    def call_notes(self, agent: str) -> dict[str, str]:
        """Return what an agent's requests said of calls beforehand, by effect."""
        return self._call_notes.get(agent, {})

    def characters(self, call: str, now: int) -> int:
        """Return the characters of the next recorded request of a call; ``now`` if the trace does not have them."""
        rows = self._requests[call]
        return int(rows[0].get("characters", rows[0]["bytes"])) if rows else now

    async def _refusal(self, call: str) -> None:
        self._barrier.record_progress()
        row = self._refusals.get(call)
        if row is None:
            return
        problem = error_of(row["error"])
        if getattr(problem, "terminal", False):
            await self._barrier.wait(call, problem, row["n"])
        raise problem

    def _reserve(self, call: str) -> None:
        """Set the recorded reservation for the next request of the call."""
        current_reservation.set(tuple(self._requests[call][0]["reserved"]) if self._requests[call] else None)

    def _on_standstill(self, point: BarrierPoint) -> RlmError | None:
        """End the replay at a standstill as the recorded run was interrupted, or return ``replay_differs``."""
        where = {"call": point.call}
        if self.interruption.kind:
            self.interruption.cancel()
            return None
        if self._unfinished:
            return RunError("replay_differs", "the trace has no end: the recorded run came no further than here", where)
        return RunError("replay_differs", f"the recorded run did not come further than {point.call}", where)

    # -- recorded results ---------------------------------------------------------------------------

    async def reply_to(self, request: ProviderRequest) -> ProviderReply:
        """Return the recorded reply to this call's request. Raises: the recorded error; RunError ``replay_differs``."""
        call = current_call.get()
        self._barrier.record_progress()
        if not self._requests[call]:
            await self._barrier.wait(call)
        sent = self._requests[call].popleft()
        if sent["request"] != request_key(request):
            where = {"call": call, "request": sent["request"]}
            what = f"the request at {call} is not the one that was sent then{self._written_by}"
            raise RunError("replay_differs", what, where)
        self._reserve(call)
        if not self._replies[call]:  # the recorded run was interrupted before the reply
            await self._barrier.wait(call)
        row = self._replies[call].popleft()
        if "error" not in row:
            recorded: ProviderReply = row["reply"]
            return recorded
        problem = error_of(row["error"])
        if problem.detail.get("source") == "deadline":
            await self._barrier.wait(call, problem, row["n"])
        if self._requests[call]:
            self.retried_errors.add(id(problem))
        raise problem

    async def sensor_scores(self, call: str) -> SensorScores:
        """Return the recorded scores of the sensor for this request. Raises: the recorded error."""
        self._barrier.record_progress()
        row = self._sensor_rows.get(call, {})
        if "error" in row:
            raise error_of(row["error"])
        if "scores" not in row:  # the recorded run was interrupted before the scores
            await self._barrier.wait(call)
        await anyio.lowlevel.checkpoint()
        scores: SensorScores = row["scores"]
        return scores

    async def tool(self, call: str, arguments: Any) -> ToolOutcome:
        """Return the recorded outcome of a tool call. Raises: RunError ``replay_differs``."""
        outcome = self._outcomes.get(call)
        if outcome is None:
            await self._barrier.wait(call)
        edited = outcome.consent is not None and outcome.consent.edited
        if not edited and digest_of(arguments) != digest_of(outcome.arguments):
            raise RunError("replay_differs", f"{outcome.tool} was called with other arguments", {"call": call})
        return outcome

    def tool_usage(self, call: str) -> Spent:
        """Return the recorded usage of a handler's own requests and children; a replay does not repeat them."""
        return self._tool_usages.get(call, Spent())


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


def _read_row(record: Record, row: Mapping[str, Any], make: Callable[[Record, Mapping[str, Any]], T]) -> T:
    """Return ``make(record, row)``. Raises: ConfigurationError ``bad_trace`` for an event or a body of another
    shape."""
    try:
        return make(record, row)
    except ConfigurationError as problem:
        if problem.kind in TRACE_PROBLEMS:
            raise
        reason = problem.message
    except (TypeError, ValueError, RecursionError) as problem:
        reason = exception_text(problem, 200)
    raise record.bad(row, reason)


def _step_call(row: Mapping[str, Any]) -> str:
    """Return the name of a step's calls."""
    return f"{row['agent']}.{row['turn']}:{row['step']}"


class ReplayBudget(RunBudget):
    """The run budget of a replay: it counts everything and refuses only turns, which belong to one agent."""

    def count(self, what: str) -> None:
        """Count as ``RunBudget.count``; only turns can be refused."""
        if what == "turns":
            super().count(what)
        else:
            self._add(what, self._line())

    def reserve(self, input_tokens: int, most_output: int, price: Price | None) -> Reservation:
        """Return the recorded reservation of this request, and count one model call."""
        self.count("model_calls")
        tokens_in, tokens_out = current_reservation.get() or (input_tokens, most_output)
        return self._opened(Reservation(tokens_in, tokens_out, price, self._line()))

    def steps_left(self) -> None:
        """Return None: the record says where the steps of a plan were stopped."""

    def left(self) -> dict[str, Any]:
        """Return the whole budget: the amounts left are in the record."""
        caps = (*COUNTED.values(), "max_total_tokens")
        left = {cap: min(getattr(run_budget.budget, cap) for run_budget in self._line()) for cap in caps}
        steps = [run_budget.budget.max_steps for run_budget in self._line() if run_budget.budget.max_steps is not None]
        return {**left, "max_steps": min(steps)} if steps else left


def _other_version(version: str) -> str:
    """Return the end of a message if another version wrote the trace; otherwise an empty text."""
    if version == __version__:
        return ""
    return f": version {version} wrote the trace, and version {__version__} writes requests with another text"


def ended_alike(record: Record, now: Completion) -> Completion:
    """Return the result of a replay, or a ``failed`` one with ``replay_differs`` if it is not the recorded result.

    The bound values of an interrupted run may depend on which branch was fastest.
    """
    for then in record.of("end"):
        kinds = [None if error is None else error["kind"] for error in (then["error"], now.error)]
        if (then["status"], then["value"], kinds[0]) != (now.status, Trace().body(now.value), kinds[1]):
            differs = RunError("replay_differs", "the replay did not end as the recorded run did", {"then": kinds[0]})
            if kinds[1] != differs.kind:
                return now.model_copy(update={"status": "failed", "error": differs.to_dict()})
    return now


class ReplayRetry(Retry):
    """Retries where the recorded run did, without a delay."""

    replay: Any

    def delay(self, attempt: int, error: ProviderError, rng: random.Random, *, left: float) -> float | None:
        """Return 0.0 seconds, or None if the recorded run did not retry."""
        if id(error) not in self.replay.retried_errors:
            return None
        self.replay.retried_errors.discard(id(error))
        return 0.0


class ReplayProvider(NothingOpen):
    """A provider that replies from a trace, and sends nothing."""

    def __init__(self, row: Mapping[str, Any], replay: Replay, *, leaf: bool) -> None:
        self._replay = replay
        self._leaf = leaf
        self.name: str = row["name"]
        self.model: str = row["model"]
        self.wire: Wire = row["wire"]
        self.enforces_schema: bool = row["enforces_schema"]
        self.price = None if row["price"] is None else Price(**row["price"])

    async def window(self) -> int | None:
        """Return the recorded window."""
        return self._replay.window(leaf=self._leaf)

    def encode(self, request: ProviderRequest) -> bytes:
        """Return a body that depends on nothing but the request."""
        return canonical_json(request.model_dump(mode="json")).encode()

    async def send(self, request: ProviderRequest, body: bytes, on_text: Any = None) -> ProviderReply:
        """Return the recorded reply to this request."""
        await anyio.lowlevel.checkpoint()
        return await self._replay.reply_to(request)
