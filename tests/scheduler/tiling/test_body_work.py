"""The work of a reduction's body beside its multiply-adds."""

from collections.abc import Mapping

import pytest

from tilec.ir.expr import Const
from tilec.ir.text import parse_tensor
from tilec.scheduler.tiling.body_work import body_work

PLAIN = "y[m, n] = sum(k, x[m, k] * w[k, n])"
DECODED = "y[m, n] = sum(b, k, x[m, b * 8 + k] * (f32(i32(bitand(shr(q[b, n], u32(k * 4)), 15)) - 8) * s[b, n]))"
WORDS = "y[m, n] = sum(k, dot_u8_i8(w[k, n], word(x[m, k * 4], x[m, k * 4 + 1], x[m, k * 4 + 2], x[m, k * 4 + 3])))"


def work(text: str, **extents: int) -> Mapping[str, float]:
    """Iterators of the work of an expression, as text, -> instructions."""
    expr = parse_tensor(text, {name: Const(extent) for name, extent in extents.items()})
    return {" ".join(sorted(part.iterators)): part.instructions for part in body_work(expr).parts}


@pytest.mark.feature("L17")
def test_a_weight_is_decoded_once_for_all_rows_and_a_product_has_no_other_work() -> None:
    assert work(PLAIN, m=4, n=32, k=16) == {}
    assert work(DECODED, m=4, n=32, b=2, k=8) == {"n": 5.0}  # shr, bitand, -, f32, *


def test_what_inner_loops_do_not_move_counts_once_for_their_steps() -> None:
    text = "y[m, n] = sum(b, k, x[m, b * 8 + k] * (w[b * 8 + k, n] - f32(z[b, n])))"
    assert work(text, m=4, n=32, b=2, k=8) == {"n": 1 + 1 / 8}


def test_words_are_loads() -> None:
    expr = parse_tensor(WORDS, {"m": Const(4), "n": Const(32), "k": Const(16)})
    assert body_work(expr).parts == ()
    assert (body_work(expr).joined_elements("x"), body_work(expr).joined_elements("w")) == (4, 1)
