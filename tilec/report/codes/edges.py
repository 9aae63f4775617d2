"""Codes of refusals: the scheduler's reasons why an edge of a plan is not connected."""

from __future__ import annotations

from tilec.ir.plan import Refusal
from tilec.report.codes.page import Page
from tilec.scheduler.refusals import REASONS, refusal

NUMBERS: dict[str, dict[str, str]] = {
    "fusion-off": {},
    "closed": {"level": "the level that the recipe closes"},
    "iterates-differently": {},
    "recomputed": {"times": "how often each element of the producer would be computed"},
    "reduction": {"iterators": "the iterators that the consumer reduces over"},
    "cycle": {},
    "capacity": {
        "level": "the level, or pool of levels, that is too small",
        "bytes": "bytes that the smallest tiles of the joined group hold there",
        "capacity": "bytes of one instance that a plan counts on: of a cache half",
        "step": "the reduce step with which the joined group would fit, if there is one",
        "tile": "the tile of its last node with which it would fit, where no reduce step is short enough",
    },
    "illegal": {"parts": "parts (pieces that share registers) of the joined group"},
    "code": {"why": "what code generation says"},
    "slower": {
        "joined": "what the joined group costs at least: picoseconds, or bytes where the recipe minimises bytes",
        "apart": "what the two groups cost as they are, in the same unit",
        "limit": "what the joined group does not stay below, where that is less than `apart`: a smaller gain is none",
    },
    "outputs-differ": {
        "results": "results of the joined group that do not lead to each other, where it was looked at",
        "reason": "why they cannot be tiled together",
    },
    "not-affine": {"iterators": "the iterators that the consumer reduces over"},
    "choice": {
        "tensors": "reads of tensors in the consumer's expression",
        "readers": "nodes that the stored result of the choice serves, where it is stored for several",
    },
    "no-rule": {},
    "length": {
        "accesses": "reads in the composed expression (when a movement is composed)",
        "nodes": "nodes of the joined group, or of the part with the consumer",
        "most": "the most that is looked at",
    },
}
"""Map from code to the numbers it carries."""

_SAMPLES: dict[str, Refusal] = {
    "fusion-off": refusal("h0", "h1", "fusion-off"),
    "closed": refusal("h1", "h2", "closed", level="l2"),
    "iterates-differently": refusal("x_t", "y", "iterates-differently"),
    "recomputed": refusal("h1", "y", "recomputed", times=64),
    "reduction": refusal("h2", "y", "reduction", iterators="k"),
    "cycle": refusal("h0", "y", "cycle"),
    "capacity": refusal("h1", "y", "capacity", level="smem", bytes=262144, capacity=166912, step=16),
    "illegal": refusal("h1", "y", "illegal", parts=5),
    "code": refusal("h1", "y", "code", why="it has more operands than registers"),
    "slower": refusal("h1", "y", "slower", joined=18400000, apart=15900000),
    "outputs-differ": refusal("h0", "h1", "outputs-differ", results=2, reason="no iterators move along"),
    "not-affine": refusal("x_r", "y", "not-affine", iterators="c, kh, kw"),
    "choice": refusal("cat", "y", "choice", tensors=4, readers=2),
    "no-rule": refusal("h1", "y", "no-rule"),
    "length": refusal("h7", "y", "length", nodes=260, most=256),
}

_REMEDIES: dict[str, str] = {
    "fusion-off": "Set schedule.fusion to register or full in the recipe.",
    "closed": "Take the level out of schedule.closed in the recipe.",
    "iterates-differently": "Nothing to mend: registers hold one point at a time. `fusion: full` may still connect the "
    "edge at a level of memory, where tiles are read as a whole.",
    "recomputed": "Nothing to mend at register level. `fusion: full` connects it at a level that keeps the producer's "
    "tile.",
    "reduction": "Use `fusion: full`: the edge is then a candidate at the core's level and at those below.",
    "cycle": "Fuse or cut what lies on the other path: `tilec diff` of a plan with `fusion: register` shows it.",
    "capacity": "Give the level more capacity in the device file, or use smaller types; (bytes - capacity) is what is "
    "missing.",
    "illegal": "Keep the groups apart; results that leave the group from inside its reduce loops cause it.",
    "code": "Nothing to mend: the group was cut there. `--print-between-passes` shows the search before and after.",
    "slower": "Nothing to mend if the prediction holds. `schedule --profile` times candidates of the groups; "
    "`objective: traffic` weighs bytes instead.",
    "outputs-differ": "Results of one group read a common ancestor along iterators of equal extent. Where one is not "
    "needed, take it out of the model's outputs.",
    "not-affine": "Keep the reshape or transpose away from the reduction: let its sizes divide each other.",
    "choice": "Nothing to mend: the choice (Concat, Where, Pad) is computed once and stored.",
    "no-rule": "Nothing to mend: `fusion: apollo` goes by rules alone. `fusion: full` goes by predicted times.",
    "length": "Raise schedule.group_nodes in the recipe where a group became too long; nothing to mend of others.",
}


def pages() -> tuple[Page, ...]:
    """One page for every code of the scheduler's closed list. Raises KeyError for a code without one."""
    return tuple(
        Page(code, "edge", meaning, _REMEDIES[code], _example(_SAMPLES[code]), NUMBERS[code])
        for code, meaning in REASONS.items()
    )


def _example(sample: Refusal) -> str:
    return f"{sample.edge}  {sample.text}"
