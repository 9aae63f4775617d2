"""Refusal codes of lowering: the closed list of reasons with their sentences, and the error that carries a refusal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tilec.errors import ArtifactError
from tilec.ir.plan import Refusal

REASONS: Final[Mapping[str, str]] = {
    "capacity": "{edge} needs {bytes} bytes of {level}, which has {capacity}",
    "cycle": "with {edge} a part of the group connected at {level} waits for itself",
    "order": "{edge} is read before the node that computes it",
    "not-computed": "{edge} is an output of the group, but no node of it computes it",
    "unknown-level": "{edge} names the level {level}, which the variant does not have",
    "unknown-name": "{edge}: there is no {what} {name}",
    "size": "{edge}: the {what} at {level} is {size}, it must be at least 1",
    "permutation": "{edge}: {what} at {level} repeats or misses something",
    "shared-leader": "{edge} shares the reduce loop of {loop}: both must be reductions that share it, {loop} the last",
    "shared-extent": "{edge}: {iterator} cannot follow {other} of {loop}, its extent is another",
    "shared-rescale": "{edge}: its rescaling reads {tensor}, which is neither itself nor before it in the shared loop",
    "shared-inside": "{edge} runs in the reduce loop of {loop} and is needed by {node} behind it",
    "shared-reduction": "{edge} is a reduction in the reduce loop of {loop} that does not share it",
    "shared-apart": "{edge} runs in the reduce loop of {loop} and is not connected with it at {level}",
    "shared-steps": "{edge} shares the reduce loop of {loop} and has steps of its own at {level}",
    "shared-step": "{edge} shares the reduce loop of {loop} and has nothing that follows {iterator}",
    "shared-end": "{edge} shares the reduce loop of {loop} and must end its part at {level}, which {node} does",
    "shared-part": "{edge} runs outside the reduce loop of {loop}, {node} inside, and {level} connects both",
    "unused": "{edge}: the {what} at {level} has no effect, {why}",
    "vector": "{edge}: vectors cannot run along {iterator}, {why}",
    "unroll": "{edge}: {size} points of {iterator} cannot be one body, {why}",
    "accumulators": "{edge} cannot have {size} accumulators, {why}",
    "unit": "{edge} cannot be computed by '{unit}', {why}",
    "prefetch": "{edge} cannot be prefetched by '{what}', {why}",
    "streamed": "{edge} cannot be stored past the caches, {why}",
    "threads": "a block at {edge} cannot have {size} threads, {why}",
    "resident": "{size} blocks cannot share an instance of {edge}, {why}",
    "arrival": "{edge}: loads at {level} cannot arrive later, {why}",
    "fast": "there is no approximation of {edge} here, {why}",
    "layout": "{edge} lies at {level} in the order {order} here, in {expected} for {other}",
}
"""Code -> sentence. The numbers of a refusal fill the braces; `edge` is an edge, a node, a tensor or a level."""


class PlanError(ArtifactError):
    """A plan that cannot be lowered: a code of `REASONS`, the edge or node, and its numbers."""

    def __init__(self, refusal: Refusal, place: str | None = None) -> None:
        self.refusal = refusal
        self.code = refusal.code
        near = refusal.numbers.get("near")
        hint = f"Did you mean {near!r}?" if near else "Change the plan there and run codegen again."
        super().__init__(REASONS[refusal.code].format(edge=refusal.edge, **refusal.numbers), place, hint)
