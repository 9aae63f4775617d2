"""Tile programs as text: goldens that read like documentation."""

from dataclasses import replace

import pytest

from tests.programs import buffer, compute, convolution, matmul, tensor
from tilec.ir.expr import Const, Var
from tilec.ir.program import Allocate, Barrier, Fill, LoadTiles, Loop, StoreTiles
from tilec.ir.program_text import interval_text, program_text, statement_text
from tilec.ir.text import parse_expr

CONVOLUTION = """\
program convolution()
level    dram: unbounded, explicit
level    shared: 1024 bytes, explicit
input    X f32[9]
input    W f32[3]
output   Y f32[9]
allocate W_s f32[3] at shared = W[0:3]
load     W_s from W
for h1 in 3:
  allocate X_s f32[6] at shared = X[h1 * 4 - 1:minimum(h1 * 4 + 4, 9) + 1]
  load     X_s from X, 0.0 outside
  allocate C_s f32[4] at shared = C[h1 * 4:minimum(h1 * 4 + 4, 9)]
  compute  C_s[h] = sum(r, X_s[h + r - 1] * W_s[r]) for h in h1 * 4:minimum(h1 * 4 + 4, 9), r in 0:3
  allocate Y_s f32[4] at shared = Y[h1 * 4:minimum(h1 * 4 + 4, 9)]
  compute  Y_s[h] = maximum(C_s[h], 0.0) for h in h1 * 4:minimum(h1 * 4 + 4, 9)
  store    Y_s to Y
"""


@pytest.mark.feature("W31")
def test_a_program() -> None:
    assert program_text(convolution()) == CONVOLUTION


def test_spread_loops_and_accumulation() -> None:
    text = program_text(matmul(cores=2))
    assert "for m1 in 2 spread over core:\n  allocate C_s f32[4, 8] at shared" in text
    assert "level    shared: 272 bytes, explicit, 2 x core\n" in text
    assert "    compute  C_s[m, n] += sum(k, A_s[m, k] * B_s[k, n]) for m in minimum(m1 * 4, 2):+4, n in 0:8" in text
    named = replace(matmul(), symbols=("M", "N"))
    assert program_text(named).startswith("program matmul(M, N)\n")


@pytest.mark.parametrize(
    ("statement", "text"),
    [
        (
            Allocate(buffer("A_s", "shared", "A[0:4, 0:8]", "f16", layout=(1, 0), copies=2, offset=Const(96))),
            "allocate A_s f16[4, 8] at shared = A[0:4, 0:8], layout 1 0, 2 copies, at byte 96",
        ),
        (Fill("A_s", float("-inf")), "fill     A_s with -inf"),
        (LoadTiles("A_s", "A", 0, 3), "load     A_s from A, 0 outside, 3 stages"),
        (StoreTiles("C", "C_s", combine="sum"), "store    C_s to C by sum"),
        (StoreTiles("C", "C_s", (Var("i"),), (parse_expr("i + 2"),)), "store    C_s[i:+2] to C"),
        (Barrier("block"), "barrier  block"),
        (Loop("i", Var("n"), ()), "for i in n:"),
        (
            replace(compute(tensor("R[()] = max(k, A[k])", {"k": 4}), "R_s", "_s", True), unit="vector"),
            "compute  R_s[()] max= max(k, A_s[k]) for k in 0:4 on vector",
        ),
    ],
)
def test_statements(statement: object, text: str) -> None:
    assert statement_text(statement) == text  # type: ignore[arg-type]


def test_intervals() -> None:
    assert interval_text(Var("i"), parse_expr("i + 1")) == "i"
    assert interval_text(Const(2), Const(5)) == "2:5"
    assert interval_text(Var("i"), parse_expr("2 * i")) == "i:2 * i"
