"""Verifier of graphs: names, order, shapes and types, independent of the passes that build graphs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tilec.ir.algebra import bounds_of, equal, simplify
from tilec.ir.bind import bound_node, iterator_ranges
from tilec.ir.call_segments import segment_of
from tilec.ir.expr import (
    Access,
    Binary,
    Const,
    Expr,
    Reduce,
    accesses,
    children,
    constant_value,
    substitute,
    variables,
    walk,
)
from tilec.ir.graph import Graph, Node
from tilec.ir.known_ranges import Ranges
from tilec.ir.scalars import fits, type_of
from tilec.ir.sizes import legal_sizes, sizes_text
from tilec.ir.text import tensor_text
from tilec.ir.verify.data import (
    constant_problems,
    port_problems,
    range_problems,
    scenario_problems,
    shape_problems,
    symbol_problems,
    tensor_problems,
)
from tilec.ir.verify.loops import loop_problems
from tilec.ir.verify.states import update_problems
from tilec.ir.verify.structure import is_integer


def check_graph(graph: Graph) -> tuple[str, ...]:
    """Problems of a graph, one sentence each; empty when it is valid. Never raises.

    checks: every name is known and defined once, before it is read; expressions use their own iterators and the graph's
    symbols; ranks and types agree; a reduction stands only at the root; shapes match the tensors' table.
    """
    problems: list[str] = []
    defined = {port.tensor for port in graph.inputs} | set(graph.constants)
    results = [port.tensor for call in graph.calls for port in call.outputs]
    problems += [
        f"{name} is made twice" for name in sorted({n for n in results if n in defined or results.count(n) > 1})
    ]
    defined |= set(results)
    problems += [f"{name} has no shape and type" for name in sorted(defined - set(graph.tensors) - set(graph.opaque))]
    problems += tensor_problems(graph.tensors, graph.symbols)
    problems += [f"{name} is a tensor and a size" for name in graph.symbols if name in graph.tensors]
    if problems:
        return tuple(problems)
    problems += port_problems(graph.inputs, graph.outputs, graph.tensors)
    problems += range_problems(graph.ranges, graph.inputs, graph.tensors, graph.symbols)
    problems += symbol_problems(graph.symbol_ranges, graph.constraints, graph.symbols, graph.symbol_values)
    problems += scenario_problems(graph.scenarios, graph.symbols)
    problems += constant_problems(graph.constants, graph.tensors, graph.files)
    if problems:
        return tuple(problems)
    ttypes, sizes = graph.ttypes, legal_sizes(graph.symbols, graph.symbol_ranges, graph.constraints)
    for node in graph.nodes:
        problems += [f"{node.name}: {problem}" for problem in _node_problems(graph, node, defined, ttypes, sizes)]
        defined.add(node.name)
    for port in graph.outputs:
        if port.tensor not in defined:
            problems.append(f"output {port.name} is never computed ({port.tensor})")
    states = update_problems(graph.calls, graph.tensors, graph.inputs, graph.outputs)
    return (*problems, *_call_problems(graph, defined), *loop_problems(graph.calls, graph.tensors), *states)


def _call_problems(graph: Graph, defined: set[str]) -> list[str]:
    """Calls that read a tensor which is never computed or depends on them."""
    there = segment_of(graph.nodes, graph.calls)
    problems = []
    for number, call in enumerate(graph.calls):
        problems += [f"{call.file} reports {s}, which is no symbol" for s in call.symbols if s not in graph.symbols]
        for port in call.inputs:
            if port.tensor not in defined:
                problems.append(f"{call.file} reads {port.tensor}, which is never computed")
            elif there.get(port.tensor, 0) > number:
                problems.append(f"{call.file} reads {port.tensor}, which depends on it")
    return problems


def _node_problems(
    graph: Graph, node: Node, defined: set[str], ttypes: Mapping[str, str], sizes: Sequence[Mapping[str, int]]
) -> list[str]:
    expr = node.expr
    if node.name in defined:
        return ["defined twice"]
    if node.name not in graph.tensors:
        return ["has no shape and type"]
    if len(set(expr.iterators)) != len(expr.iterators):
        return [f"an iterator occurs twice in {tensor_text(expr)}"]
    if captured := set(expr.iterators).intersection(graph.symbols):
        return [f"iterator {', '.join(sorted(captured))} has the name of a symbol in {tensor_text(expr)}"]
    problems = shape_problems(node.name, expr.extents, graph.symbols)
    if problems:
        return problems
    target = graph.tensors[node.name]
    if len(target.shape) != len(expr.shape) or not all(
        equal(a, b) for a, b in zip(target.shape, expr.shape, strict=False)
    ):
        problems.append("its extents are not its tensor's shape")
    unknown = variables(expr.value) - set(expr.iterators) - set(graph.symbols)
    if unknown:
        problems.append(f"unknown iterator {', '.join(sorted(unknown))} in {tensor_text(expr)}")
    if any(isinstance(e, Reduce) for child in children(expr.body) for e in walk(child)):
        problems.append("a reduction stands below the root")
    for access in accesses(expr):
        problems += _access_problems(graph, node, access, defined, sizes)
    if not problems:
        try:
            kind = type_of(expr.body, ttypes)
        except (TypeError, KeyError) as error:
            return [str(error)]
        if not fits(kind, target.ttype):
            problems.append(f"a body of type {kind} is stored as {target.ttype}: {tensor_text(expr)}")
    return problems


def _is_index(index: Expr) -> bool:
    """Whether an index is integer arithmetic or data-dependent; in the latter case the type check covers it."""
    return is_integer(index) or any(isinstance(e, Access) for e in walk(index))


def _access_problems(
    graph: Graph, node: Node, access: Access, defined: set[str], sizes: Sequence[Mapping[str, int]]
) -> list[str]:
    if access.tensor not in defined or access.tensor not in graph.tensors:
        return [f"reads {access.tensor}, which is not computed before it"]
    shape = graph.tensors[access.tensor].shape
    if len(shape) != len(access.index):
        return [f"reads {access.tensor} of rank {len(shape)} with {len(access.index)} indices"]
    if not all(_is_index(index) for index in access.index):
        return [f"an index of {access.tensor} is no integer"]
    if any(isinstance(e, Access) for i in access.index for e in walk(i)) or "where(" in tensor_text(node.expr):
        return []
    ranges = iterator_ranges(node.expr)
    problems = []
    for dimension, (index, extent) in enumerate(zip(access.index, shape, strict=True)):
        if _stays(index, extent, ranges):
            continue
        for there in sizes:
            # What the algebra cannot decide for all sizes is certain at some of them.
            bound = bound_node(node, {symbol: Const(size) for symbol, size in there.items()}).expr
            here = iterator_ranges(bound)
            at, size = (simplify(substitute(e, {s: Const(n) for s, n in there.items()})) for e in (index, extent))
            if Const(0) not in bound.extents and _leaves(at, size, here):
                low, high = bounds_of(at, here)
                where = f" at {sizes_text(there)}" if there else ""
                runs = f"index {dimension} of {access.tensor} runs from {low} to {high}"
                problems.append(f"{runs}, its extent is {constant_value(size)}{where}")
                break
    return problems


def _stays(index: Expr, extent: Expr, ranges: Ranges) -> bool:
    """Whether an index is inside an extent for all sizes, as far as the algebra knows."""
    low = bounds_of(index, ranges)[0]
    rest = bounds_of(Binary("-", extent, index), ranges)[0]
    return low is not None and low >= 0 and rest is not None and rest >= 1


def _leaves(index: Expr, extent: Expr, ranges: Ranges) -> bool:
    """Whether an index may be below 0 or beyond an extent."""
    low, high = bounds_of(index, ranges)
    size = bounds_of(extent)[1]
    return (low is not None and low < 0) or (high is not None and size is not None and high >= size)
