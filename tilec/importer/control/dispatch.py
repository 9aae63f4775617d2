"""Dispatch of control flow, sequences and optionals, which import resolves so that only tensor operators remain."""

from __future__ import annotations

from collections.abc import Callable

import onnx

from tilec.importer.control import sequences
from tilec.importer.control.branch import branch
from tilec.importer.control.loop import loop
from tilec.importer.control.region import Region
from tilec.importer.control.scan import batched_scan, scan
from tilec.importer.named_values import Items, Maybe, NamedValue

Rule = Callable[[Region], list[NamedValue]]

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
"""The last opset whose `Scan` has a batch dimension."""


def control_of(region: Region) -> Rule | None:
    """The function that resolves an operator of ONNX's own domain; None for operators that compute tensors.

    Raises ConfigError for a node that violates its operator's definition.
    """
    kind, opset = region.node.op_type, region.context.opset
    rule = _RULES.get(kind)
    if kind == "Scan" and opset <= LAST_BATCHED_SCAN:
        rule = batched_scan
    if kind == "Identity" and isinstance(region.optional(0), Items | Maybe):
        rule = _same
    if rule is None or not _exists(kind, opset):
        return None
    region.check()
    return rule


def _same(region: Region) -> list[NamedValue]:
    return [region.optional(0)]


def _exists(kind: str, opset: int) -> bool:
    try:
        onnx.defs.get_schema(kind, opset)
    except onnx.defs.SchemaError:
        return False
    return True
