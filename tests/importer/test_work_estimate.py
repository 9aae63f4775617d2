"""Work: cheap or proportionate expressions pass, absurd ones are refused with their number of operations."""

import pytest

from tilec.errors import UnsupportedError
from tilec.importer.builder import Builder, Origin
from tilec.importer.operator import Op
from tilec.importer.work_estimate import MAX_FREE_STEPS, MAX_STEPS_PER_ELEMENT, require_affordable
from tilec.ir.expr import Const, Expr, Var


def op(*shape: int | str) -> Op:
    builder = Builder(["n"])
    x = builder.input("x", extents(*shape), "f32")
    return Op("Search", 20, (x, None), ("y",), {}, Origin("Search", "s", "m.onnx: node 's' (Search)"), builder)


def extents(*shape: int | str) -> list[Expr]:
    return [Const(e) if isinstance(e, int) else Var(e) for e in shape]


def test_few_steps_are_affordable_whatever_the_operands() -> None:
    require_affordable(op(1), extents(MAX_FREE_STEPS))


def test_steps_in_proportion_to_an_operand_or_a_result_are_affordable() -> None:
    require_affordable(op(1 << 20), extents(1 << 20, MAX_STEPS_PER_ELEMENT))
    require_affordable(op(1), extents(1 << 20, MAX_STEPS_PER_ELEMENT), extents(1 << 20))
    require_affordable(op("n", 4096), extents("n", 4096, MAX_STEPS_PER_ELEMENT))


def test_absurd_work_is_refused_with_its_number() -> None:
    with pytest.raises(UnsupportedError, match="would take 4294967296 operations"):
        require_affordable(op(1 << 16), extents(1 << 16, 1 << 16))
    with pytest.raises(UnsupportedError):
        require_affordable(op(0), extents(1 << 16, 1 << 16), extents(0))


def test_work_that_depends_on_a_symbol_is_that_at_large_sizes() -> None:
    require_affordable(op("n"), extents("n", "n"))
    with pytest.raises(UnsupportedError, match=r"1073741824 operations \(n \* n \* n at large sizes\)"):
        require_affordable(op("n"), extents("n", "n", "n"))
