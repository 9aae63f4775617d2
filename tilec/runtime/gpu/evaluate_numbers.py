"""The numbers of a model with symbols, computed from their texts: where no compiled code of the host is at hand."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from tilec.abi.shape_program import NUMBERS, ShapeProgram
from tilec.ir.evaluate import integer
from tilec.ir.expr import Access, Const, Expr, Var, rebuild
from tilec.ir.text import parse_expr

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class NumbersEvaluator:
    """Computes the numbers of a shape program part by part; called as `tilec.runtime.sizes.Evaluate`."""

    def __init__(self, sizes: ShapeProgram) -> None:
        self._symbols = [symbol.name for symbol in sizes.symbols]
        self._parts: dict[int, list[tuple[int, Expr]]] = defaultdict(list)
        for position in range(len(self._symbols), len(sizes.numbers)):
            self._parts[sizes.part(position)].append((position, _plain(parse_expr(sizes.numbers[position]))))

    def __call__(self, numbers: NDArray[np.int64], part: int) -> None:
        """Compute the numbers of a part from symbols and the numbers of earlier parts."""
        values = {_name(position): int(value) for position, value in enumerate(numbers)}
        values |= {name: values[_name(position)] for position, name in enumerate(self._symbols)}
        for position, expr in self._parts[part]:
            numbers[position] = values[_name(position)] = int(integer(expr, values))


def _name(position: int) -> str:
    return f"{NUMBERS}[{position}]"


def _plain(expr: Expr) -> Expr:
    """An expression that refers to other numbers as variables."""
    match expr:
        case Access(tensor, (Const(position),)) if tensor == NUMBERS:
            return Var(_name(int(position)))
    return rebuild(expr, _plain)
