"""Control flow, sequences and optionals: operators that import resolves, so that only tensors are left to compute."""

from __future__ import annotations

from collections.abc import Callable

from tilec.importer import sequences
from tilec.importer.branch import branch
from tilec.importer.held import Held, Items, Maybe
from tilec.importer.loop import loop
from tilec.importer.region import Region
from tilec.importer.scan import batched_scan, scan

Rule = Callable[[Region], list[Held]]

_RULES: dict[str, Rule] = {
    "If": branch,
    "Loop": loop,
    "Scan": scan,
    "ConcatFromSequence": sequences.concatenate,
    "Optional": sequences.optional,
    "OptionalGetElement": sequences.element,
    "OptionalHasElement": sequences.has_element,
    "SequenceAt": sequences.at,
    "SequenceConstruct": sequences.construct,
    "SequenceEmpty": sequences.no_elements,
    "SequenceErase": sequences.erase,
    "SequenceInsert": sequences.insert,
    "SequenceLength": sequences.length,
    "SequenceMap": sequences.mapped,
    "SplitToSequence": sequences.split,
}

LAST_BATCHED_SCAN = 8
"""The opset whose `Scan` has a batch dimension."""


def control_of(region: Region) -> Rule | None:
    """The function that resolves an operator of ONNX's own domain; None for operators that compute tensors."""
    kind = region.node.op_type
    if kind == "Scan" and region.context.opset <= LAST_BATCHED_SCAN:
        return batched_scan
    if kind == "Identity" and isinstance(region.held(0), Items | Maybe):
        return lambda same: [same.held(0)]
    return _RULES.get(kind)
