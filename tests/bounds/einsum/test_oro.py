from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path

import pytest

from bounds import walk
from tests.examples import seeds
from tilec.bounds.einsum.cost import accesses
from tilec.bounds.einsum.curve import Curve
from tilec.bounds.einsum.einsum import Einsum, einsum_of, parse_einsum
from tilec.bounds.einsum.oro import divisors, oro
from tilec.bounds.einsum.oro_plus import oro_plus
from tilec.errors import UnsupportedError
from tilec.ir.expr import Access, Binary, Const, Reduce, TensorExpr, Var

MIB = 2**20
GEMM = "C[m,n] = sum(k, A[m,k] * B[k,n])"
CONV = "O[p,q,k] = sum(r,s,c, I[p+r,q+s,c] * W[r,s,c,k])"
# The tool's heads and groups are independent iterators: groups are summed over.
GOLDEN = {
    "gemm_4k": (GEMM, {"m": 4096, "n": 4096, "k": 4096}),
    "gemm_60_48_36": (GEMM, {"m": 60, "k": 48, "n": 36}),
    "gemm_8_8_8": (GEMM, {"m": 8, "n": 8, "k": 8}),
    "conv_small": ("O[p,k] = sum(r,c, I[p+r,c] * W[r,c,k])", {"p": 8, "r": 3, "c": 4, "k": 4}),
    "conv1x1": ("O[p,q,k] = sum(c, I[p,q,c] * W[c,k])", {"p": 16, "q": 16, "c": 64, "k": 64}),
    "gbmm_small": ("O[h,m,n] = sum(g,k, I[h,m,k] * W[g,k,n])", {"h": 4, "g": 2, "m": 16, "k": 8, "n": 16}),
}


def pairs(curve: Curve) -> list[tuple[int, int]]:
    return [(point.buffer_bytes, point.accesses) for point in curve.points]


@pytest.mark.feature("O01", "O02", "O03", "O34")
@pytest.mark.parametrize("name", GOLDEN)
def test_curves_of_the_tool_are_met_point_by_point(name: str) -> None:
    with (Path(__file__).parents[1] / "golden" / f"{name}.csv").open(encoding="utf-8") as file:
        expected = [(int(row["buffer_bytes"]), int(row["accesses_words"])) for row in csv.DictReader(file)]
    assert pairs(oro(parse_einsum(*GOLDEN[name]))) == expected


@pytest.mark.feature("O03")
@pytest.mark.parametrize("seed", seeds(14, 42))
def test_curves_are_the_front_of_all_tilings_and_orders_walked_over_element_sets(seed: int) -> None:
    einsum = walk.random_einsum(seed)
    assert pairs(oro(einsum)) == walk.front(einsum, walk.perfect), einsum


@pytest.mark.parametrize("seed", range(14))
def test_the_order_of_a_point_moves_what_the_point_says(seed: int) -> None:
    base = walk.random_einsum(seed)
    bits = {operand.tensor: width for operand, width in zip(base.operands, (4, 8, 32), strict=True)}
    einsum = parse_einsum(base.text, base.extents, bits)
    for point in oro(einsum).points:
        moved = accesses(einsum, point.mapping)
        assert point.accesses == sum(moved.values())
        assert point.traffic_bytes == -(
            -sum(words * bits[label.partition("#")[0]] for label, words in moved.items()) // 8
        )


@pytest.mark.feature("O06", "O33")
def test_square_gemm_at_the_capacities_of_gpus() -> None:
    curve = oro(parse_einsum(*GOLDEN["gemm_4k"], bits=32))
    reached = {mib: point.traffic_bytes / MIB for mib in (1, 2, 24, 40, 50, 64) if (point := curve.at(mib * MIB))}
    assert reached == {1: 1600, 2: 1088, 24: 320, 40: 256, 50: 256, 64: 256}
    assert curve.largest_useful_buffer == 67_141_632
    assert curve.points[-1].traffic_bytes == 192 * MIB


@pytest.mark.feature("O29")
def test_gpus_move_more_than_the_curve_at_their_l2() -> None:
    curve = oro(parse_einsum(*GOLDEN["gemm_4k"], bits=32))
    for mib, measured in {2: (2755, 1618), 24: (650, 561.5), 40: (533, 411.1), 50: (373.4, 373.3)}.items():
        point = curve.at(mib * MIB)
        assert point is not None
        assert point.traffic_bytes / MIB < min(measured)


@pytest.mark.feature("O01")
def test_tall_gemm_needs_one_mib_for_its_minimum() -> None:
    curve = oro(parse_einsum(GEMM, {"m": 16384, "n": 1024, "k": 1024}))
    assert (curve.largest_useful_buffer, curve.points[-1].traffic_bytes) == (1_050_624, 33 * MIB)


@pytest.mark.feature("O14")
@pytest.mark.parametrize("groups", [1, 2, 4, 8, 16, 32])
def test_grouped_queries_need_the_same_buffer_for_every_number_of_groups(groups: int) -> None:
    text = "O[g,j,m,n] = sum(k, I[g,j,m,k] * W[g,k,n])"
    curve = oro(parse_einsum(text, {"g": groups, "j": 32 // groups, "m": 4096, "k": 128, "n": 4096}))
    assert curve.largest_useful_buffer == 528_512  # 128 x 4096 weights, a row of inputs, a row of results
    assert curve.points[-1].accesses == 32 * 4096 * (128 + 4096) + groups * 128 * 4096


def test_a_convolution_moves_less_than_the_matrix_formula_claims() -> None:
    curve = oro(parse_einsum(CONV, {"p": 56, "q": 56, "k": 64, "r": 3, "s": 3, "c": 64}))
    point = curve.at(12_512)
    assert point is not None
    assert point.accesses <= 1_126_400


def test_no_mapping_fits_below_the_first_point() -> None:
    curve = oro(parse_einsum(*GOLDEN["gemm_8_8_8"]))
    assert curve.at(2) is None
    assert curve.at(3) == curve.points[0]
    assert curve.at(10**9) == curve.points[-1]


def test_extents_of_one() -> None:
    assert pairs(oro(parse_einsum(GEMM, {"m": 1, "n": 1, "k": 1}))) == [(3, 3)]
    assert pairs(oro(parse_einsum("y[i] = x[0] + 1.0", {"i": 1}))) == [(2, 2)]


@pytest.mark.parametrize("bound", [oro, oro_plus])
def test_scalars(bound: Callable[[Einsum], Curve]) -> None:
    scalar = TensorExpr("y", (), (), (), Binary("*", Access("x", ()), Access("z", ())))
    assert pairs(bound(einsum_of(scalar))) == [(3, 3)]
    total = TensorExpr("y", (), ("k",), (Const(5),), Reduce("sum", ("k",), Access("x", (Var("k"),))))
    assert pairs(bound(einsum_of(total))) == [(2, 6)]


def test_divisors() -> None:
    assert all(divisors(extent) == walk.perfect(extent) for extent in range(1, 200))


def test_counts_beyond_64_bits_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="more than can be counted"):
        oro(parse_einsum(GEMM, {"m": 2**20, "n": 2**20, "k": 2**20}))
