"""Bytes of a tensor come from one function of its tType."""

import numpy as np
import pytest

from tilec.ir.expr import Const, Var, constant_value
from tilec.ir.text import text_of
from tilec.ir.types import TTYPES, numpy_dtype, tensor_bytes


@pytest.mark.feature("L01")
@pytest.mark.parametrize("name", sorted(name for name, each in TTYPES.items() if not each.coded))
def test_plain_types_agree_with_numpy(name: str) -> None:
    array = np.zeros((3, 5), numpy_dtype(name))
    assert tensor_bytes(name, (3, 5)) == Const(array.nbytes)
    assert tensor_bytes(name, ()) == Const(array.itemsize)
    assert tensor_bytes(name, (0, 7)) == Const(0)


@pytest.mark.feature("B04")
def test_symbolic_sizes_give_symbolic_bytes() -> None:
    assert text_of(tensor_bytes("f16", (Var("batch"), Const(3)))) == "batch * 6"


@pytest.mark.feature("L20", "L29")
@pytest.mark.parametrize(
    ("ttype", "shape", "size"),
    [
        ("i4", (3, 5), 3 * 3),
        ("i4", (7, 4096), 7 * 2048),
        ("i3", (1000,), 400),
        ("u3", (2, 11), 2 * 2 * 4),
        ("i1", (2, 8), 2),
        ("u2", (5,), 2),
        ("e2m3", (6,), 8),
        ("e4m3fn", (3, 5), 15),
        ("i4", (), 1),
        ("i3", (), 4),
        ("u1", (4, 0), 0),
        ("tf32", (3,), 12),
    ],
)
def test_codes_lie_in_whole_words_along_the_last_dimension(ttype: str, shape: tuple[int, ...], size: int) -> None:
    assert tensor_bytes(ttype, shape) == Const(size)


@pytest.mark.feature("L29")
def test_weights_of_a_layer_take_the_bytes_that_ladder_reports() -> None:
    """LLaMA-2-70B: 855,638,016 weights of a layer (Ladder, figure 11, without the 432 MiB of the context)."""
    shapes = ((8192, 8192), (8192, 8192), (1024, 8192), (1024, 8192), *[(28672, 8192)] * 3)
    for ttype, mebibytes in (("f16", 1632), ("e4m3fn", 816), ("i4", 408), ("i2", 204), ("i1", 102)):
        size = sum(constant_value(tensor_bytes(ttype, shape)) or 0 for shape in shapes)
        assert size == mebibytes << 20
