"""What a user means by a group, an edge or a node of a plan; the nearest valid names where there is none."""

from __future__ import annotations

from collections.abc import Iterable

from tilec.errors import UsageError, did_you_mean
from tilec.ir.expr import operands
from tilec.ir.graph import Node
from tilec.ir.plan import Group, Plan
from tilec.scheduler.refusals import edge_name

FEW = 8
"""Names that are listed where none is near."""


def group_named(plan: Plan, text: str) -> Group:
    """A group by its name, by its number from 1, or by the name of one of its nodes.

    Raises UsageError with the nearest name.
    """
    if text.isdigit() and text not in {group.name for group in plan.groups}:
        if 1 <= int(text) <= len(plan.groups):
            return plan.groups[int(text) - 1]
        raise UsageError(f"no group has the number {text}", "--group", f"Groups are numbered 1 to {len(plan.groups)}.")
    for group in plan.groups:
        if group.name == text:
            return group
    for group in plan.groups:
        if any(_is_called(node, text) for node in group.nodes):
            return group
    raise UsageError(f"no group is called {text!r}", "--group", _near(text, [group.name for group in plan.groups]))


def node_named(plan: Plan, text: str, option: str = "--node") -> str:
    """A node by its tensor's name, or by that of the operator in the model that it comes from, if only one does.

    Raises UsageError with the nearest name.
    """
    nodes = [node for group in plan.groups for node in group.nodes]
    if any(node.name == text for node in nodes):
        return text
    sources = [node.name for node in nodes if _is_called(node, text)]
    if len(sources) == 1:
        return sources[0]
    if sources:
        raise UsageError(f"{len(sources)} nodes come from {text!r}", option, f"They are {_few(sources)}.")
    why = _elsewhere(plan, text)
    if why:
        raise UsageError(f"{text!r} is no node of a group: {why}", option, _near(text, [node.name for node in nodes]))
    raise UsageError(f"no node is called {text!r}", option, _near(text, [node.name for node in nodes]))


def edge_named(plan: Plan, text: str) -> tuple[str, str]:
    """The tensor and the node of `A->B`: names of nodes, or A alone where one node reads it.

    Raises UsageError that says what A is when it is no node, and which nodes read it when B does not.
    """
    nodes = {node.name: node for group in plan.groups for node in group.nodes}
    first, arrow, second = (part.strip() for part in text.partition("->"))
    if not first or (arrow and not second):
        raise UsageError(f"{text!r} is no edge", "--edge", "Write it like A->B: B reads what A makes.")
    why = _elsewhere(plan, first)
    if why:
        raise UsageError(f"nothing can be connected at {first!r}: {why}", "--edge")
    tensor = node_named(plan, first, "--edge")
    readers = [node.name for node in nodes.values() if tensor in operands(node.expr)]
    if not arrow:
        if len(readers) == 1:
            return tensor, readers[0]
        hint = f"Its readers are {_few(readers)}." if readers else "No node reads it: it is an output of the model."
        raise UsageError(f"{tensor!r} has {len(readers)} readers", "--edge", hint)
    node = node_named(plan, second, "--edge")
    if node in readers:
        return tensor, node
    backward = tensor in nodes and node in operands(nodes[tensor].expr)
    hint = (
        f"It is the other way round: {edge_name(node, tensor)}."
        if backward
        else f"{tensor!r} is read by {_few(readers)}."
        if readers
        else f"No node reads {tensor!r}."
    )
    raise UsageError(f"{node!r} does not read {tensor!r}", "--edge", hint)


def _is_called(node: Node, text: str) -> bool:
    return text in (node.name, *node.origin)


def _elsewhere(plan: Plan, text: str) -> str:
    """What a tensor is that no group makes; empty for one that does not exist."""
    if text in {node.name for node in plan.prepared}:
        return "it is prepared once, before the model runs"
    if text in plan.constants:
        return "it is a constant of the model"
    if text in {name for port in plan.inputs for name in (port.tensor, port.name)}:
        return "it is an input of the model"
    if text in {name for call in plan.calls for port in call.outputs for name in (port.tensor, port.name)}:
        return "onnxruntime makes it"
    return ""


def _near(text: str, names: Iterable[str]) -> str:
    known = list(names)
    near = did_you_mean(text, known)
    return f"Did you mean {near!r}?" if near else f"There are {_few(known)}."


def _few(names: Iterable[str]) -> str:
    known = list(names)
    more = len(known) - FEW
    return ", ".join(known[:FEW]) + (f" and {more} more" if more > 0 else "")
