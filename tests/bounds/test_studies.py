"""What the paper says of single Einsums (section on their bounds, figures 10 to 14), checked on our curves."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise, product
from math import prod

import pytest

from tilec.bounds.einsum.curve import Curve
from tilec.bounds.einsum.einsum import Einsum, parse_einsum
from tilec.bounds.einsum.oro import oro
from tilec.bounds.einsum.oro_plus import oro_plus

BOUNDS = [oro, oro_plus]
Bound = Callable[[Einsum], Curve]


def gemm(m: int, n: int, k: int) -> Einsum:
    return parse_einsum("C[m,n] = sum(k, A[m,k] * B[k,n])", {"m": m, "n": n, "k": k})


def conv(window: int, stride: int = 1, dilation: int = 1) -> Einsum:
    """A convolution with results of 16x16 and 64 channels in and out (figure 12)."""
    text = f"O[p,q,k] = sum(r,s,c, I[p*{stride}+r*{dilation},q*{stride}+s*{dilation},c] * W[r,s,c,k])"
    return parse_einsum(text, {"p": 16, "q": 16, "k": 64, "r": window, "s": window, "c": 64})


def heads(number: int) -> Einsum:
    """A batch of products with the same number of operations for every number of heads (figure 13)."""
    extents = {"h": number, "m": 4096, "n": 4096, "k": 4096 // number}
    return parse_einsum("C[h,m,n] = sum(k, A[h,m,k] * B[h,k,n])", extents)


def moved(curve: Curve, capacities: list[int]) -> list[int]:
    return [point.accesses for capacity in capacities if (point := curve.at(capacity))]


def intensity(einsum: Einsum, curve: Curve) -> float:
    """Operations per word with all the buffer that helps."""
    return 2 * prod(einsum.extents.values()) / curve.points[-1].accesses


@pytest.mark.feature("O11")
@pytest.mark.parametrize("shape", list(product([2048, 4096, 8192], repeat=3)))
def test_products_need_about_their_smallest_operand_and_peak_at_their_smallest_extent(shape: tuple[int, ...]) -> None:
    m, n, k = shape
    einsum = gemm(m, n, k)
    curve = oro(einsum)
    smallest = min(m * n, m * k, n * k)
    assert 1 <= curve.largest_useful_buffer / smallest < 1.01
    assert min(shape) / 2 < intensity(einsum, curve) < 2 * min(shape)


@pytest.mark.feature("O11")
@pytest.mark.parametrize("bound", BOUNDS)
def test_larger_products_gain_more_by_a_power_of_the_buffer(bound: Bound) -> None:
    capacities = [2**10, 2**12, 2**14, 2**16, 2**18, 2**20]
    falls = {size: moved(bound(gemm(size, size, size)), capacities) for size in (2048, 4096, 8192)}
    # Four times the buffer, half the traffic.
    assert all(1.7 < a / b < 2.3 for fall in falls.values() for a, b in pairwise(fall))
    gains = [fall[0] - fall[-1] for fall in falls.values()]
    assert gains == sorted(gains)


@pytest.mark.feature("O12")
@pytest.mark.parametrize("bound", BOUNDS)
def test_larger_filters_move_more_gain_more_and_peak_higher(bound: Bound) -> None:
    einsums = [conv(1), conv(3), conv(5)]
    curves = [bound(einsum) for einsum in einsums]
    at = [moved(curve, [64, 256, 1024, 4096, 16384, 65536]) for curve in curves]
    assert all(small < large for pair in pairwise(at) for small, large in zip(*pair, strict=True))
    peaks = [intensity(einsum, curve) for einsum, curve in zip(einsums, curves, strict=True)]
    assert peaks == sorted(peaks)
    assert [round(peak) for peak in peaks] == [57, 255, 363]
    gains = [curve.points[0].accesses / curve.points[-1].accesses for curve in curves]
    assert gains == sorted(gains)


@pytest.mark.feature("O12")
@pytest.mark.parametrize("bound", BOUNDS)
@pytest.mark.parametrize(("stride", "dilation", "more"), [(2, 1, 1.9), (1, 2, 1.4)])
def test_stride_and_dilation_move_more(bound: Bound, stride: int, dilation: int, more: float) -> None:
    capacities = [64, 256, 1024, 4096, 16384, 65536]
    base, spread = moved(bound(conv(3)), capacities), moved(bound(conv(3, stride, dilation)), capacities)
    assert all(1 < wide / narrow < more for narrow, wide in zip(base, spread, strict=True))


@pytest.mark.feature("O13")
@pytest.mark.parametrize("bound", BOUNDS)
def test_more_heads_move_more_and_have_less_use_for_buffers(bound: Bound) -> None:
    einsums = [heads(number) for number in (1, 2, 8, 32, 128)]
    curves = [bound(einsum) for einsum in einsums]
    for capacity in (10**5, 10**7, 10**8):
        least = [moved(curve, [capacity])[0] for curve in curves]
        assert least == sorted(least)
    useful = [curve.largest_useful_buffer for curve in curves]
    assert useful == sorted(useful, reverse=True)
    peaks = [intensity(einsum, curve) for einsum, curve in zip(einsums, curves, strict=True)]
    assert peaks == sorted(peaks, reverse=True)


@pytest.mark.feature("O14")
@pytest.mark.parametrize("bound", BOUNDS)
def test_shared_weights_move_less_at_every_buffer(bound: Bound) -> None:
    text = "O[g,j,m,n] = sum(k, I[g,j,m,k] * W[g,k,n])"
    sizes = {"m": 1024, "k": 128, "n": 1024}
    curves = [bound(parse_einsum(text, {"g": groups, "j": 32 // groups, **sizes})) for groups in (1, 4, 32)]
    for capacity in (10**3, 10**4, 10**5, 10**6):
        least = [moved(curve, [capacity])[0] for curve in curves]
        assert least == sorted(least)
    whole = [curve.points[-1].accesses for curve in curves]
    # What remains in any buffer is the weights themselves: fewer groups, fewer weights.
    assert [large - small for small, large in pairwise(whole)] == [3 * 128 * 1024, 28 * 128 * 1024]


def test_a_group_for_every_head_is_a_batch_of_products() -> None:
    text = "O[g,j,m,n] = sum(k, I[g,j,m,k] * W[g,k,n])"
    grouped = parse_einsum(text, {"g": 6, "j": 1, "m": 24, "k": 10, "n": 18})
    single = oro_plus(gemm(24, 18, 10))
    for one, many in zip(single.points, oro_plus(grouped).points, strict=True):
        assert (many.buffer_bytes, many.accesses) == (one.buffer_bytes, 6 * one.accesses)
