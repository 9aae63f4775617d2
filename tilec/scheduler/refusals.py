"""The closed list of reasons for which an edge is not connected, and the notes that passes hand on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from tilec.ir.graph import Graph
from tilec.ir.plan import Refusal

REASONS: dict[str, str] = {
    "fusion-off": "the recipe asks for one group per node",
    "closed": "the recipe closes the level for connections",
    "iterates-differently": "the consumer does not read, at each of its points, the element of that point",
    "recomputed": "the consumer reads each element several times, so the producer would be computed again",
    "reduction": "the consumer reduces over what the producer computes tile by tile",
    "cycle": "another path from producer to consumer leaves the group",
    "capacity": "the smallest tiles of the joined group exceed the level",
    "illegal": "no legal tile program comes of the joined group: results of it are in each other's way",
    "code": "the back end has no code for the joined group",
    "slower": "joined, the two groups are predicted to take longer than apart (or to move or hold more)",
    "outputs-differ": "the group would have two results that are tiled differently",
    "not-affine": "composing the movement would leave // or % in an index that a reduction runs over",
    "choice": "composing the movement would put a choice between tensors into a reduction",
    "no-rule": "no rule of the table joins the two areas",
    "length": "the consumer's expression, or the group, would become too long",
}
"""Code -> what it means; `Refusal.numbers` holds the figures behind it."""


def edge_name(tensor: str, node: str) -> str:
    """The name of an edge."""
    return f"{tensor}->{node}"


def refusal(tensor: str, node: str, code: str, **numbers: int | str) -> Refusal:
    """A refusal with a code of the closed list. Raises KeyError for any other code."""
    if code not in REASONS:
        raise KeyError(code)
    return Refusal(edge_name(tensor, node), code, numbers)


WHOLE: dict[str, str] = {
    "": "spread over partial results",
    "results": "it has results enough to keep the device busy",
    "short": "its results are sums of few elements",
    "rates": "its arithmetic and its traffic at full rates take hardly less",
    "share": "it takes little of what the graph takes",
    "slower": "no split is predicted to take clearly less",
}
"""Why a reduction was left whole: code -> what it means; the empty one for those that were spread."""


NOT_ROUNDED: dict[str, str] = {
    "no-unit": "the device has no unit for words of such integers",
    "no-integers": "the weight is no constant of integers of 8 bits or fewer with integer zero points",
    "no-blocks": "the activation is not read along whole blocks of one dimension",
}
"""Why the activations of a product are not rounded where they may be: code -> what it means."""


@dataclass(frozen=True, slots=True)
class ReductionSpread:
    """Whether a reduction was spread over partial results, and the figures behind that.

    node      its name
    results   results that it has
    steps     elements that are reduced to each of them
    units     results that the device works on at a time
    whole     predicted picoseconds of the reduction by itself (0: not looked at)
    split     those of the splits that were made; where it was left whole, what it takes at full rates
    partials  partial results of each result, 1 where it was left whole
    reason    a code of WHOLE
    """

    node: str
    results: int
    steps: int
    units: int
    whole: int = 0
    split: int = 0
    partials: int = 1
    reason: str = ""


@dataclass(frozen=True, slots=True)
class RewrittenGraph:
    """A graph on its way to a plan, with the notes of its passes.

    refused  edge -> why a pass did not remove it
    spread   reduction -> whether it was spread over partial results
    without  what plans are called for the passes that were left out
    """

    graph: Graph
    refused: Mapping[str, Refusal] = field(default_factory=dict)
    spread: Mapping[str, ReductionSpread] = field(default_factory=dict)
    without: tuple[str, ...] = ()

    def followed(self, after: RewrittenGraph) -> RewrittenGraph:
        """What a pass made of it, with the notes of those before."""
        return replace(after, spread={**self.spread, **after.spread}, without=self.without)

    def left_out(self, without: str) -> RewrittenGraph:
        """The graph as it is, with a note that a pass did not run."""
        return replace(self, without=(*self.without, without))
