"""The compiled shape program against the evaluation of its expressions."""

import ctypes

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.codegen.test_shape_program import EXPRESSIONS, SYMBOLS, builder
from tests.cpu_models import HOST
from tilec.codegen.cpu.compile.build_library import build_library
from tilec.codegen.launch_table import PointerTable
from tilec.ir.evaluate import integer
from tilec.ir.expr import Binary, Call, Const, Var
from tilec.ir.text import parse_expr
from tilec.runtime.cpu.library import load_library

CONDITIONS = ("seq <= 512", "batch * seq % 12 == 0", "batch <= 3 or seq > 9", "not past > 4 and seq != 1")


def compiled(numbers, folder):
    """The function (sizes, parts) -> numbers."""
    file = build_library({}, (), PointerTable(0, 0, 0), HOST, folder, numbers=numbers, interface="i")
    library = load_library(folder, file, "i", sized=True)

    def run(sizes, parts=(0,)):
        values = np.full(len(numbers.exprs), -7, np.int64)
        values[: len(SYMBOLS)] = [sizes[name] for name in SYMBOLS]
        for part in parts:
            library.numbers(values.ctypes.data_as(ctypes.c_void_p).value, part)
        return values.tolist()

    return run


@pytest.mark.feature("B05")
@settings(
    max_examples=3,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.lists(EXPRESSIONS, min_size=20, max_size=40), st.integers(0, 1 << 30))
def test_compiled_numbers_are_those_of_their_expressions(tmp_path, texts, seed):
    numbers = builder()
    exprs = [parse_expr(text) for text in (*texts, *CONDITIONS)]
    positions = [numbers.position(expr) for expr in exprs]
    run = compiled(numbers.numbers, tmp_path)
    generator = np.random.default_rng(seed)
    for _ in range(20):
        sizes = {name: int(generator.choice([0, 1, generator.integers(0, 90)])) for name in SYMBOLS}
        values = run(sizes)
        assert [values[p] for p in positions] == [int(integer(expr, sizes)) for expr in exprs]


def test_a_part_is_computed_when_its_symbols_are_known(tmp_path):
    numbers = builder(parts=(0, 1, 2))
    first = numbers.position(parse_expr("batch * 3"))
    second = numbers.position(parse_expr("seq * 2 + batch * 3"))
    third = numbers.position(parse_expr("past + 1"))
    run = compiled(numbers.numbers, tmp_path)
    sizes = {"batch": 5, "seq": 4, "past": 9}
    assert [run(sizes)[p] for p in (first, second, third)] == [15, -7, -7]
    assert [run(sizes, (0, 1))[p] for p in (first, second, third)] == [15, 23, -7]
    assert [run(sizes, (0, 1, 2))[p] for p in (first, second, third)] == [15, 23, 10]


def test_conditions_that_are_numbers_and_numbers_that_are_conditions(tmp_path):
    """What is known already stands as a number in what follows; literals of either kind stand anywhere."""
    numbers = builder()
    texts = ["seq <= 9", "where(seq <= 9, past, batch)", "not seq <= 9 or batch > 3", "(seq <= 9) + past"]
    texts += ["where(True, past, 1)", "where(seq <= 9 and True, 3, past)", "where(False or seq <= 9, batch, past) * 2"]
    positions = [numbers.position(parse_expr(text)) for text in texts]
    run = compiled(numbers.numbers, tmp_path)
    for sizes in ({"batch": 5, "seq": 9, "past": 2}, {"batch": 2, "seq": 10, "past": 7}):
        values = run(sizes)
        assert [values[p] for p in positions] == [int(integer(parse_expr(text), sizes)) for text in texts]


@pytest.mark.feature("B05", "B24")
def test_long_chains_of_places_are_compiled_in_time(tmp_path):
    """Each place is the end of one of the two before it."""
    numbers, ends, sizes = builder(), [Var("batch"), Var("seq")], {"batch": 5, "seq": 70, "past": 9}
    values = [sizes["batch"], sizes["seq"]]
    for step in range(80):
        end = Binary("+", Call("maximum", (ends[-1], ends[-2])), Binary("*", ends[-2], Const(step % 2)))
        ends.append(numbers.add(end))
        values.append((max(values[-1], values[-2]) + values[-2] * (step % 2) + 2**63) % 2**64 - 2**63)
    run = compiled(numbers.numbers, tmp_path)(sizes)
    assert [run[numbers.position(end)] for end in ends] == values
