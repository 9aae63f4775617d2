"""Verifier of the data in an artifact: shapes, sizes, constants, ports, before anything of such a size is allocated."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import prod
from types import MappingProxyType

import numpy as np

from tilec.ir.expr import COMPARISONS, Binary, Expr, constant_value, variables
from tilec.ir.graph import Constant, IndexRange, Inline, Port, Tensor, WeightRef
from tilec.ir.sizes import Constraint, Scenario, SymbolRange, SymbolValue
from tilec.ir.text import text_of
from tilec.ir.types import MAX_SIZE, TTYPES, is_ttype, numpy_dtype, tensor_bytes
from tilec.ir.verify.structure import is_integer

NO_VALUES: Mapping[str, SymbolValue] = MappingProxyType({})


def shape_problems(name: str, shape: Iterable[Expr], symbols: Iterable[str]) -> list[str]:
    """Problems of the extents of a tensor or an expression."""
    known = set(symbols)
    problems = []
    for extent in shape:
        size = constant_value(extent)
        unknown = sorted(variables(extent) - known)
        if unknown:
            problems.append(f"the shape of {name} uses {unknown[0]}, which is no symbol of the graph")
        elif not is_integer(extent) or isinstance(size, bool):
            problems.append(f"the shape of {name} is not made of integers")
        elif size is not None and not 0 <= size <= MAX_SIZE:
            problems.append(f"the shape of {name} has the extent {size}")
    return problems


def tensor_problems(tensors: Mapping[str, Tensor], symbols: Iterable[str]) -> list[str]:
    """Problems of tensors: unknown types, invalid extents, sizes beyond any memory."""
    problems = []
    for name, tensor in tensors.items():
        if not is_ttype(tensor.ttype):
            problems.append(f"{name} has the unknown tType {tensor.ttype}")
            continue
        wrong = shape_problems(name, tensor.shape, symbols)
        sizes = [constant_value(extent) for extent in tensor.shape]
        if not wrong and prod(size for size in sizes if size is not None) * TTYPES[tensor.ttype].bits > 8 * MAX_SIZE:
            wrong = [f"{name} takes more than {MAX_SIZE} bytes"]
        problems += wrong
    return problems


def constant_problems(
    constants: Mapping[str, Constant], tensors: Mapping[str, Tensor], files: Mapping[str, str]
) -> list[str]:
    """Constants that disagree with their tensor: number of elements, size in bytes, unknown file."""
    problems = []
    for name, constant in constants.items():
        tensor = tensors.get(name)
        sizes = [constant_value(extent) for extent in tensor.shape] if tensor else []
        if tensor is None or None in sizes:
            problems.append(f"constant {name} has no shape that is known")
            continue
        count = prod(size for size in sizes if size is not None)
        match constant:
            case Inline(values) if TTYPES[tensor.ttype].coded:
                problems.append(
                    f"constant {name} of {tensor.ttype} has {len(values)} values in the graph, not in a file"
                )
            case Inline(values):
                if len(values) != count or not _represents(values, tensor.ttype):
                    problems.append(f"constant {name} has {len(values)} values, not {count} of {tensor.ttype}")
            case WeightRef(file, _, size):
                if size != constant_value(tensor_bytes(tensor.ttype, tensor.shape)):
                    problems.append(f"constant {name} takes {size} bytes, its tensor has {count} of {tensor.ttype}")
                if file not in files:
                    problems.append(f"constant {name} lies in {file}, which is none of the files")
    return problems


def _represents(values: tuple[bool | int | float, ...], ttype: str) -> bool:
    """Whether a type can represent the values."""
    try:
        with np.errstate(all="ignore"):
            np.array(values, numpy_dtype(ttype))
    except (OverflowError, ValueError, TypeError):
        return False
    return True


def range_problems(
    ranges: Iterable[IndexRange], inputs: Sequence[Port], tensors: Mapping[str, Tensor], symbols: Iterable[str]
) -> list[str]:
    """Ranges of tensors that are no inputs, of columns that they do not have, or of an invalid extent."""
    ranks = {port.tensor: len(tensors[port.tensor].shape) for port in inputs if port.tensor in tensors}
    problems = [f"{r.tensor} has a range of indices and is no input" for r in ranges if r.tensor not in ranks]
    problems += [
        f"a range of {r.tensor} is of place {r.column[1]} of dimension {r.column[0]}"
        for r in ranges
        if r.column is not None and not (0 <= r.column[0] < ranks.get(r.tensor, MAX_SIZE) and r.column[1] >= 0)
    ]
    return problems + [p for r in ranges for p in shape_problems(f"a range of {r.tensor}", [r.extent], symbols)]


def symbol_problems(
    ranges: Mapping[str, SymbolRange],
    constraints: Iterable[Constraint],
    symbols: Iterable[str],
    values: Mapping[str, SymbolValue] = NO_VALUES,
) -> list[str]:
    """Ranges of sizes that are no symbols, constraints that are no conditions over symbols, values of symbols."""
    known = set(symbols)
    problems = [f"{name} has a range and is no symbol of the graph" for name in ranges if name not in known]
    for name, each in values.items():
        if name in known:
            problems.append(f"the symbol {name} has the value {text_of(each.value)}")
        problems += shape_problems(f"the size {name}", [each.value], known)
    for constraint in constraints:
        text = text_of(constraint.holds)
        unknown = sorted(variables(constraint.holds) - known)
        if unknown:
            problems.append(f"the constraint {text} uses {unknown[0]}, which is no symbol of the graph")
        elif not _is_condition(constraint.holds):
            problems.append(f"the constraint {text} is no comparison of sizes")
    return problems


def scenario_problems(scenarios: Mapping[str, Scenario], symbols: Iterable[str]) -> list[str]:
    """Scenarios of sizes that are no symbols, or no integers."""
    known = set(symbols)
    problems = []
    for name, each in scenarios.items():
        used = {*each.sizes, *(symbol for expr in each.sizes.values() for symbol in variables(expr))}
        used |= {symbol for point in each.at for symbol in point}
        problems += [f"the scenario {name} uses {s}, which is no symbol of the graph" for s in sorted(used - known)]
        problems += [
            f"the scenario {name} gives {symbol} a size that is no integer"
            for symbol, expr in each.sizes.items()
            if not is_integer(expr)
        ]
    return problems


def _is_condition(expr: Expr) -> bool:
    """Whether an expression is a comparison of integers, or such conditions combined."""
    if isinstance(expr, Binary) and expr.op in ("and", "or"):
        return _is_condition(expr.left) and _is_condition(expr.right)
    return isinstance(expr, Binary) and expr.op in COMPARISONS and is_integer(expr.left) and is_integer(expr.right)


def port_problems(inputs: Sequence[Port], outputs: Sequence[Port], tensors: Mapping[str, Tensor]) -> list[str]:
    """Names or tensors that occur as two inputs or two outputs."""
    problems = []
    for kind, ports in (("inputs", inputs), ("outputs", outputs)):
        names = [port.name for port in ports]
        carriers = [port.tensor for port in ports if port.tensor in tensors]
        problems += [f"two {kind} are called {name}" for name in sorted({n for n in names if names.count(n) > 1})]
        problems += [f"two {kind} are {tensor}" for tensor in sorted({t for t in carriers if carriers.count(t) > 1})]
    return problems
