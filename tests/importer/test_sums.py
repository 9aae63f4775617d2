"""Half precision is summed in single, everything else in its own type."""

import pytest

from tilec.importer.sums import summed, wide


@pytest.mark.parametrize("ttype", ["f16", "bf16"])
def test_half_precision(ttype: str) -> None:
    assert summed(ttype) == "f32"
    assert wide("x * x", ttype) == "f32(x * x)"


@pytest.mark.parametrize("ttype", ["f32", "f64", "i8", "u64"])
def test_other_types_stay(ttype: str) -> None:
    assert summed(ttype) == ttype
    assert wide("x * x", ttype) == "x * x"
