"""Names of values: what TVM's simplifier gets to see of them."""

import re

import pytest
from tvm import tirx
from tvm.tirx.script.builder import ir as I  # noqa: N812

from tilec.codegen.cpu.emit.kernel_function import Operand, kernel_function
from tilec.codegen.cpu.emit.scalar_functions import floordiv, floormod
from tilec.codegen.cpu.emit.vector_ops import bind, constant, reinterpret


@pytest.mark.parametrize("lanes", [1, 16])
def test_names_of_floats_stand_for_registers(lanes: int) -> None:
    """TVM would put the expression in the place of its name wherever that is used: 3**20 terms here."""

    def body(buffers, scratch, task):
        at = task if lanes == 1 else tirx.Ramp(task * lanes, tirx.IntImm("int64", 1), lanes)
        x = bind(buffers["x"][at])
        for _ in range(20):
            x = bind(x * x + x)
        I.buffer_store(buffers["y"], x, [at])

    operands = [Operand("x", "float32", 64), Operand("y", "float32", 64)]
    text = kernel_function("powers", operands, body).script()
    loaded, *named = re.findall(r"T\.let\[T\.float32\w*\] = (.*)", text)
    assert loaded.startswith("buffer[")
    assert len(named) == 20
    assert all(re.fullmatch(r"buffer_\d+\[T\.int64\(0\)\]", value) for value in named)


def test_names_of_integers_stand_for_what_is_known_of_them() -> None:
    def body(buffers, scratch, task):
        index = bind(task * 2 + 1)
        I.buffer_store(buffers["y"], buffers["x"][index], [index])

    text = kernel_function("odd", [Operand("x", "int64", 64), Operand("y", "int64", 64)], body).script()
    assert re.search(r"T\.let\[T\.int64\] = task \* T\.int64\(2\) \+ T\.int64\(1\)", text)


def test_names_of_chosen_integers_stand_for_registers() -> None:
    """Quotients of quotients by sizes, as of grouped heads: TVM took minutes for the mask of an attention."""

    def body(buffers, scratch, task):
        index = task
        for _ in range(4):
            index = bind(floormod("int64", 1, floordiv("int64", 1, index - 7, task), task))
        I.buffer_store(buffers["y"], index, [task])

    text = kernel_function("heads", [Operand("y", "int64", 64)], body).script()
    assert "T.Select" in text
    assert not [line for line in text.splitlines() if "T.let" in line and "T.Select" in line]


@pytest.mark.parametrize("lanes", [1, 4])
def test_bits_of_integer_literals_are_literals(lanes: int) -> None:
    """TVM builds no code for a reinterpreted 0, which pads the last word of a row of products."""
    for value, before, after, expected in (
        (0, "int8", "uint8", 0),
        (-1, "int8", "uint8", 255),
        (0, "int32", "float32", 0),
    ):
        made = reinterpret(constant(value, before, lanes), after, lanes)
        literal = made.value if lanes > 1 else made
        assert isinstance(literal, tirx.IntImm | tirx.FloatImm)
        assert literal.value == expected
    assert "reinterpret" in str(reinterpret(constant(1, "int32", lanes), "float32", lanes))
