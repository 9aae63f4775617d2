"""Bytes of a tensor come from one function of its tType."""

import numpy as np
import pytest

from tilec.ir.expr import Const, Var
from tilec.ir.text import text_of
from tilec.ir.types import TTYPES, TType, numpy_dtype, tensor_bytes


@pytest.mark.feature("L01")
@pytest.mark.parametrize("name", sorted(TTYPES))
def test_plain_types_agree_with_numpy(name: str) -> None:
    array = np.zeros((3, 5), numpy_dtype(name))
    assert tensor_bytes(name, (3, 5)) == Const(array.nbytes)
    assert tensor_bytes(name, ()) == Const(array.itemsize)
    assert tensor_bytes(name, (0, 7)) == Const(0)


@pytest.mark.feature("B04")
def test_symbolic_sizes_give_symbolic_bytes() -> None:
    assert text_of(tensor_bytes("f16", (Var("batch"), Const(3)))) == "batch * 6"


def test_blocks_with_metadata(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TTYPES, "mx4", TType("mx4", "float", 4, block=32, block_bits=8))
    assert tensor_bytes("mx4", (33,)) == Const((33 * 4 + 2 * 8 + 7) // 8)


def test_lossless_conversions_are_lossless() -> None:
    for source in TTYPES.values():
        for target in source.converts_to:
            if source.kind in ("int", "uint"):
                info = np.iinfo(numpy_dtype(source.name))
                for number in (info.min, info.max):
                    assert int(np.array(number, numpy_dtype(source.name)).astype(numpy_dtype(target))) == number
