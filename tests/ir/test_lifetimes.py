"""Lifetimes of buffers: from the first statement that uses them to the last."""

import pytest

from tests.programs import buffer, convolution, loop, matmul
from tilec.ir.lifetimes import lifetimes, reads, spans, statements, uses, writes
from tilec.ir.program import Allocate, ComputeTile, Fill, LoadTiles, Loop, StoreTiles


@pytest.mark.feature("W08")
def test_a_buffer_lives_from_first_to_last_use() -> None:
    unused = Allocate(buffer("U", "shared", "A[0:1]"))
    a = buffer("A_s", "shared", "A[0:4]")
    body = (
        Allocate(a),
        unused,
        LoadTiles("A_s", "A"),
        loop("i", 2, Fill("B_s", 0.0)),
        StoreTiles("A", "A_s"),
        Fill("B", 0.0),
    )
    life = lifetimes(body)
    assert life.born == ((), (), ("A_s",), (), (), ())
    assert life.dying == ((), (), (), (), ("A_s",), ())


def test_a_pipelined_buffer_lives_all_the_time() -> None:
    ahead = buffer("A_s", "shared", "A[0:4]", copies=2)
    body = (Allocate(ahead), Fill("B", 0.0), LoadTiles("A_s", "A"), StoreTiles("A", "A_s"), Fill("B", 0.0))
    life = lifetimes(body)
    assert (life.born[0], life.dying[-1]) == (("A_s",), ("A_s",))


def test_spans_number_single_statements() -> None:
    (outer,) = matmul().body
    assert isinstance(outer, Loop)
    inner = spans(matmul().body)
    assert inner["C_s"] == (1, len(tuple(statements(outer.body))) - 2)
    assert inner["A_s"][0] < inner["B_s"][0] < inner["A_s"][1] == inner["B_s"][1] < inner["C_s"][1]


def test_a_loop_keeps_alive_what_it_uses() -> None:
    (outer,) = matmul().body
    assert isinstance(outer, Loop)
    life = lifetimes(outer.body)
    assert [names for names in life.born if names] == [("C_s",)]
    assert life.dying[-1] == ("C_s",)
    assert uses(outer) == {"A", "B", "C", "A_s", "B_s", "C_s"}


def test_reads_and_writes() -> None:
    tile = next(s for s in statements(matmul().body) if isinstance(s, ComputeTile))
    assert reads(tile) == ("A_s", "B_s", "C_s")
    assert writes(tile) == ("C_s",)
    relu = [s for s in statements(convolution().body) if isinstance(s, ComputeTile)][-1]
    assert reads(relu) == ("C_s",)
    assert reads(StoreTiles("C", "C_s", combine="sum")) == ("C_s", "C")
    assert reads(Fill("C", 0.0)) == ()
