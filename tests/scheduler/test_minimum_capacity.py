"""A level that cannot hold one element's tile is named, with the bytes needed and those there."""

from __future__ import annotations

import pytest

from tests.lower.cases import MATMUL, Case
from tilec.errors import TilecError
from tilec.ir.graph import Node
from tilec.ir.intervals import NUMPY
from tilec.ir.plan import PlanLevel, Pool
from tilec.scheduler.minimum_capacity import LevelTooSmallError, element_bytes, require_capacity

DRAM = PlanLevel("dram", 1)
"""The lowest level holds whole tensors and is not asked."""


def room(case: Case, *levels: PlanLevel, core: int = 1) -> None:
    nodes = [Node(expr) for expr in case.nodes()]
    require_capacity(nodes, case.plan().tensors, (DRAM, *levels), core, NUMPY, "tiny")


def needs(text: str, shape: tuple[int, ...], **extents: int) -> tuple[int, int]:
    """Bytes read and computed."""
    case = Case([text], extents, {"X": shape, "I": (4,)}, ttypes={"I": "i64"})
    read, computed = element_bytes(case.nodes()[0], case.plan().tensors, NUMPY)
    return sum(read), computed


@pytest.mark.parametrize(
    ("text", "shape", "extents", "read"),
    [
        ("Y[i] = sum(k, X[i, k] * 2.0)", (4, 5), {"i": 4, "k": 5}, 4),
        ("Y[i] = X[i] + X[i + 3]", (7,), {"i": 4}, 16),
        ("Y[i] = where(0 <= i - 1 and i - 1 < 3, X[i - 1], 0.0)", (3,), {"i": 5}, 4),
        ("Y[i] = X[i // 3, i % 3]", (2, 3), {"i": 6}, 4),
        ("Y[i, j] = X[I[i], j]", (9, 2), {"i": 4, "j": 2}, 8),
        ("Y[i] = X[i]", (0,), {"i": 0}, 0),
    ],
)
def test_what_an_element_needs(text: str, shape: tuple[int, ...], extents: dict[str, int], read: int) -> None:
    assert needs(text, shape, **extents) == (read, 4)


@pytest.mark.feature("W17")
def test_the_level_that_is_too_small_is_named() -> None:
    room(MATMUL, PlanLevel("l2", 12), PlanLevel("reg", 4))
    with pytest.raises(LevelTooSmallError) as caught:
        room(MATMUL, PlanLevel("l2", 11), PlanLevel("reg", 4))
    assert (caught.value.level, caught.value.needed, caught.value.capacity) == ("level l2", 12, 11)
    assert isinstance(caught.value, TilecError)
    assert caught.value.exit_code == 2
    assert "level l2 of tiny holds 11 bytes, the tile of one element of C needs 12" in str(caught.value)
    with pytest.raises(LevelTooSmallError, match="level reg of tiny holds 3 bytes"):
        room(MATMUL, PlanLevel("l2", 12), PlanLevel("reg", 3))
    with pytest.raises(LevelTooSmallError, match="level reg of tiny holds 4 bytes"):
        room(MATMUL, PlanLevel("l2", 12), PlanLevel("reg", 4), core=2)


def test_each_tensor_takes_whole_units_of_the_alignment() -> None:
    room(MATMUL, PlanLevel("l2", 48, alignment=16), PlanLevel("reg", 4))
    with pytest.raises(LevelTooSmallError, match="needs 48"):
        room(MATMUL, PlanLevel("l2", 47, alignment=16), PlanLevel("reg", 4))


def test_caches_and_unbounded_levels_hold_anything() -> None:
    room(MATMUL, PlanLevel("l2", 1, managed="implicit"), PlanLevel("reg", None))


def test_a_pool_holds_the_shares_of_all_its_levels() -> None:
    def levels(capacity: int) -> tuple[PlanLevel, ...]:
        chip = PlanLevel("chip", None, pool=Pool("sram", capacity, 4))
        return chip, PlanLevel("tile", None, 4, pool=Pool("sram", capacity))

    room(MATMUL, *levels(15), core=2)
    with pytest.raises(LevelTooSmallError, match="pool sram of tiny holds 14 bytes.*needs 15"):
        room(MATMUL, *levels(14), core=2)
