"""What an artifact says of its data: shapes, sizes, constants, ports; checked before anything of that size is made."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import prod

import numpy as np

from tilec.ir.expr import Expr, constant_value, variables
from tilec.ir.graph import Constant, Inline, Port, Tensor, WeightRef
from tilec.ir.types import TTYPES, numpy_dtype
from tilec.ir.verify.structure import is_integer

LARGEST = 1 << 40
"""Bytes of a tensor, and the most points of one iterator."""


def shape_problems(name: str, shape: Iterable[Expr], symbols: Iterable[str]) -> list[str]:
    """What is wrong with the extents of a tensor or an expression."""
    known = set(symbols)
    problems = []
    for extent in shape:
        size = constant_value(extent)
        unknown = sorted(variables(extent) - known)
        if unknown:
            problems.append(f"the shape of {name} uses {unknown[0]}, which is no symbol of the graph")
        elif not is_integer(extent) or isinstance(size, bool):
            problems.append(f"the shape of {name} is not made of integers")
        elif size is not None and not 0 <= size <= LARGEST:
            problems.append(f"the shape of {name} has the extent {size}")
    return problems


def tensor_problems(tensors: Mapping[str, Tensor], symbols: Iterable[str]) -> list[str]:
    """Tensors of unknown type, with extents that are none, or too large for any memory."""
    problems = []
    for name, tensor in tensors.items():
        if tensor.ttype not in TTYPES:
            problems.append(f"{name} has the unknown tType {tensor.ttype}")
            continue
        wrong = shape_problems(name, tensor.shape, symbols)
        sizes = [constant_value(extent) for extent in tensor.shape]
        if not wrong and prod(size for size in sizes if size is not None) * TTYPES[tensor.ttype].bits > 8 * LARGEST:
            wrong = [f"{name} takes more than {LARGEST} bytes"]
        problems += wrong
    return problems


def constant_problems(
    constants: Mapping[str, Constant], tensors: Mapping[str, Tensor], files: Mapping[str, str]
) -> list[str]:
    """Constants whose values are not those of their tensor: another number, another size, of no file."""
    problems = []
    for name, constant in constants.items():
        tensor = tensors.get(name)
        sizes = [constant_value(extent) for extent in tensor.shape] if tensor else []
        if tensor is None or None in sizes:
            problems.append(f"constant {name} has no shape that is known")
            continue
        count = prod(size for size in sizes if size is not None)
        match constant:
            case Inline(values):
                if len(values) != count or not _held(values, tensor.ttype):
                    problems.append(f"constant {name} has {len(values)} values, not {count} of {tensor.ttype}")
            case WeightRef(file, _, size):
                if size * 8 != count * TTYPES[tensor.ttype].bits:
                    problems.append(f"constant {name} takes {size} bytes, its tensor has {count} of {tensor.ttype}")
                if file not in files:
                    problems.append(f"constant {name} lies in {file}, which is none of the files")
    return problems


def _held(values: tuple[bool | int | float, ...], ttype: str) -> bool:
    """Whether a type holds the values."""
    try:
        with np.errstate(all="ignore"):
            np.array(values, numpy_dtype(ttype))
    except (OverflowError, ValueError, TypeError):
        return False
    return True


def port_problems(inputs: Sequence[Port], outputs: Sequence[Port], tensors: Mapping[str, Tensor]) -> list[str]:
    """Names or tensors that stand for two inputs or two outputs."""
    problems = []
    for kind, ports in (("inputs", inputs), ("outputs", outputs)):
        names = [port.name for port in ports]
        held = [port.tensor for port in ports if port.tensor in tensors]
        problems += [f"two {kind} are called {name}" for name in sorted({n for n in names if names.count(n) > 1})]
        problems += [f"two {kind} are {tensor}" for tensor in sorted({t for t in held if held.count(t) > 1})]
    return problems
