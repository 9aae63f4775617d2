"""Which spread loops units around them only repeat."""

from __future__ import annotations

import pytest

from tests.programs import buffer, compute, load, loop, tensor
from tilec.ir.program import Allocate, Fill, Statement, StoreTiles
from tilec.machine.repeated_loops import is_repeated

COPY = tensor("T[i] = X[i]", {"i": 8})
HELD = buffer("X_r", "reg", "X[j:j+1]")
MADE = Allocate(buffer("T_r", "reg", "T[j:j+1]"))
STORED = StoreTiles("T_s", "T_r")


def body(held: Statement = MADE, box: str = "j:j+1", store: Statement = STORED) -> tuple[Statement, ...]:
    return (*load(HELD, "X_s"), held, compute(COPY, "T_r", "_r", i=box), store)


@pytest.mark.parametrize(
    ("statements", "repeated"),
    [
        (body(), True),
        ((loop("k", 2, *body(), scope="thread"),), True),
        (body(held=Allocate(buffer("T_r", "reg", "T[t:t+1]"))), False),
        (body(box="t:t+1"), False),
        ((loop("k", "t", *body()),), False),
        (body(store=StoreTiles("T_s", "T_r", combine="sum")), False),
        ((*body(), Fill("A_r", 0.0)), False),
        ((*load(HELD, "A_r"),), False),
    ],
    ids=["own", "nested", "window", "box", "extent", "combine", "writes", "reads"],
)
def test_what_tells_units_apart(statements: tuple[Statement, ...], repeated: bool) -> None:
    assert is_repeated(loop("j", 8, *statements, scope="thread"), {"t"}, {"X_s", "T_s"}) is repeated
