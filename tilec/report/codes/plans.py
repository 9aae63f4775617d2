"""Codes of plan errors: illegal entries of an edited plan, as codegen reports them."""

from __future__ import annotations

from tilec.ir.plan import Refusal
from tilec.lower.checks.plan_errors import REASONS, PlanError
from tilec.report.codes.page import Page

NUMBERS: dict[str, str] = {
    "bytes": "bytes that the group's program holds at the level",
    "capacity": "bytes of one instance of the level",
    "level": "the memory level",
    "what": "which decision or kind of thing it is about",
    "name": "the name as it is written in the plan",
    "size": "the size as it is written in the plan",
    "loop": "the node whose reduce loop is shared",
    "iterator": "a reduce iterator",
    "other": "the other iterator, or the other group, that it is compared with",
    "tensor": "a tensor that the expression reads",
    "node": "the node that stands in the way",
    "unit": "the compute unit that the plan names",
    "why": "why the decision has no effect, or cannot be obeyed",
    "order": "dimensions in storage, outermost first, as this group has them",
    "expected": "the same as the other group has them",
}
"""Meanings of the numbers of plan errors; each sentence names its own."""

_SAMPLES: dict[str, Refusal] = {
    "capacity": Refusal("group_3", "capacity", {"level": "smem", "bytes": 262144, "capacity": 167936}),
    "cycle": Refusal("h0->y", "cycle", {"level": "l2"}),
    "order": Refusal("h1->h2", "order"),
    "not-computed": Refusal("h9", "not-computed"),
    "unknown-level": Refusal("h1->y", "unknown-level", {"level": "smen", "near": "smem"}),
    "unknown-name": Refusal("l1", "unknown-name", {"what": "node", "name": "h11", "near": "h1"}),
    "size": Refusal("h1", "size", {"what": "tile of m", "level": "l1", "size": 0}),
    "permutation": Refusal("h1", "permutation", {"what": "the order of loops", "level": "l1"}),
    "shared-leader": Refusal("peak", "shared-leader", {"loop": "total"}),
    "shared-extent": Refusal("peak", "shared-extent", {"iterator": "k", "other": "j", "loop": "total"}),
    "shared-rescale": Refusal("total", "shared-rescale", {"tensor": "mean"}),
    "shared-inside": Refusal("peak", "shared-inside", {"loop": "total", "node": "y"}),
    "shared-reduction": Refusal("mean", "shared-reduction", {"loop": "total"}),
    "shared-apart": Refusal("shifted", "shared-apart", {"loop": "total", "level": "l1"}),
    "shared-steps": Refusal("peak", "shared-steps", {"loop": "total", "level": "l1"}),
    "shared-step": Refusal("peak", "shared-step", {"loop": "total", "iterator": "k"}),
    "shared-end": Refusal("total", "shared-end", {"loop": "total", "level": "l1", "node": "y"}),
    "shared-part": Refusal("bias", "shared-part", {"loop": "total", "level": "l1", "node": "peak"}),
    "unused": Refusal("h1", "unused", {"what": "tile", "level": "l1", "why": "it follows the tile of y there"}),
    "vector": Refusal("h1", "vector", {"iterator": "m", "why": "its neighbours do not lie side by side in the result"}),
    "unroll": Refusal("h1", "unroll", {"iterator": "k", "size": 512, "why": "a tile has 256"}),
    "accumulators": Refusal("h1", "accumulators", {"size": 4, "why": "nothing is reduced"}),
    "unit": Refusal("h1", "unit", {"unit": "vpdpbusd", "why": "it is no sum of products of words"}),
    "prefetch": Refusal("w", "prefetch", {"what": "step", "why": "no loop comes to enough that is new"}),
    "streamed": Refusal("y", "streamed", {"why": "an output of the model may begin inside a vector"}),
    "threads": Refusal("smem", "threads", {"size": 100, "why": "32 of them execute instructions together"}),
    "resident": Refusal("smem", "resident", {"size": 9, "why": "a core has memory and units for 4"}),
    "arrival": Refusal("x", "arrival", {"level": "smem", "why": "it is converted to f32 on its way"}),
    "fast": Refusal("tanh", "fast", {"why": "only /, erf, exp, sigmoid have an approximation"}),
    "layout": Refusal("h1", "layout", {"level": "dram", "order": "0 1", "other": "group_2", "expected": "1 0"}),
}

_MEANINGS: dict[str, str] = {
    "capacity": "the tiles of a group need more of a level than it has",
    "cycle": "parts of a group that are connected at a level wait for each other",
    "order": "a node stands before one that it reads",
    "not-computed": "a group is to hand out a tensor that none of its nodes computes",
    "unknown-level": "a level is named that the variant does not list",
    "unknown-name": "a node, tensor or iterator is named that is not there",
    "size": "a tile size, reduce step or number of copies is less than 1",
    "permutation": "an order of loops or dimensions repeats one, leaves one out, or names a foreign one",
    "shared-leader": "a shared reduce loop is led by something that does not share it or is not its last reduction",
    "shared-extent": "reduce iterators that are to move together have different extents",
    "shared-rescale": "a partial result is rescaled by a tensor that the shared loop does not have before it",
    "shared-inside": "a tensor exists only inside a shared loop and is needed outside",
    "shared-reduction": "a reduction stands in a shared loop without sharing it",
    "shared-apart": "nodes that share a reduce loop are not connected with it at a level",
    "shared-steps": "a reduction that follows another's loop has reduce steps of its own",
    "shared-step": "a reduction that follows another's loop has no iterator that moves with one of its steps",
    "shared-end": "a shared loop is not the end of its part at a level",
    "shared-part": "nodes inside and outside of a shared loop are connected at one level",
    "unused": "a decision of the plan has no effect",
    "vector": "vectors are to run along an iterator whose neighbours cannot be stored as one",
    "unroll": "one body of a loop is to cover more points than a tile has or a compiler takes",
    "accumulators": "a point of a node is to have more partial results than there are registers, or none to combine",
    "unit": "a node is to be computed by a unit that the device does not have, or that computes something else",
    "prefetch": "a tensor is to be fetched ahead that is not read from memory, or of which too little is new each time",
    "streamed": "a result is to be stored past the caches that stays in the group, is read again or begins anywhere",
    "threads": "a block is to have more threads than the device starts, parts of warps, or too few for its tiles",
    "resident": "more blocks are to share a core than it has memory and units for",
    "arrival": "threads are to go on before a load has arrived that no instruction begins so",
    "fast": "a function is to be approximated that has no approximation, or that the group does not compute",
    "layout": "two groups store one tensor in different orders",
}

_SHARED = "Take the entry out of `shared`, or connect and step its nodes as the leader is."

_REMEDIES: dict[str, str] = {
    "capacity": "Make the tiles or reduce steps of the group smaller at that level.",
    "cycle": "Take that edge out of `connect`, or connect the path beside it as well.",
    "order": "List the group's nodes so that each stands behind what it reads.",
    "not-computed": "Take the tensor out of the group's `outputs`, or put its node in.",
    "unknown-level": "Use a level of the variant's `levels`, or add it there.",
    "unknown-name": "Correct the name; the message has the nearest one.",
    "size": "Write a size of at least 1, or leave the entry out for the whole extent.",
    "permutation": "List each iterator or dimension once.",
    "unused": "Take the decision out, or put it on the final node of the part.",
    "vector": "Name an iterator along which the result is contiguous, a reduce iterator, or nothing for scalar code.",
    "unroll": "Write a smaller number, or take the node out of `vectors` and `unroll` to have them chosen anew.",
    "accumulators": "Write a smaller number, or unroll fewer points of the node.",
    "unit": "Take the entry out, or name the unit that the message tells.",
    "prefetch": "Take the entry out, or write the kind that is possible.",
    "streamed": "Take the tensor out of `streamed`.",
    "threads": "Write a number that the message allows, or leave out `threads` to have the code decided anew.",
    "resident": "Write a smaller number, or give a block fewer threads or smaller tiles.",
    "arrival": "Take the tensor out of `asynchronous`.",
    "fast": "Take the function out of `fast`.",
    "layout": "Give the tensor one layout at that level in every group.",
}


def pages() -> tuple[Page, ...]:
    """One page for every code with which `lower` and `codegen` refuse a plan. Raises KeyError for a code without
    one."""
    return tuple(_page(code) for code in REASONS)


def _page(code: str) -> Page:
    sample = _SAMPLES[code]
    numbers = {name: NUMBERS[name] for name in sample.numbers if name != "near"}
    remedy = _SHARED if code.startswith("shared-") else _REMEDIES[code]
    return Page(code, "plan", _MEANINGS[code], remedy, str(PlanError(sample)), numbers)
