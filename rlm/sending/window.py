"""How much of a model's window a request may take, and how much is kept for the reply."""

from __future__ import annotations

from rlm.model.policy import DEFAULT_RESERVE_OUTPUT, Policy

OUTPUT_SHARE = 4
"""Where nobody says how much a reply may take, it gets what is usual, but at most one part in four of the model's
window."""


def fitted(
    policy: Policy, window: int | None, most: int | None = None, usual: int = DEFAULT_RESERVE_OUTPUT
) -> tuple[Policy, int]:
    """The policy with the window and the output reserve of one request, and the tokens that its reply may take:
    ``most``, else the policy's word, else what is ``usual``."""
    given = {name: getattr(policy, name) for name in policy.model_fields_set}
    room = policy.window if window is None else min(window, given.get("window", window))
    if most is None:
        most = given.get("reserve_output", min(usual, room // OUTPUT_SHARE))
    reserve = max(most, given.get("reserve_output", 0))
    if (room, reserve) == (policy.window, policy.reserve_output):
        return policy, most
    return Policy(**{**given, "window": room, "reserve_output": reserve}), most
