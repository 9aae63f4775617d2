from __future__ import annotations

import csv
from collections import Counter
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from tilec.bounds.chain import templates
from tilec.bounds.chain.chain import Product
from tilec.bounds.einsum.oro import divisors

M, K, N, P2 = 32, 8, 16, 4
# Of the tool's files: 32 x 8 x 16, rows cut in 4.
FILES = {
    "": templates.FULL,
    "_allowk": templates.TILED_K,
    "_allowkn": templates.TILED_KN,
    "_allowk_flash": templates.FLASH_SECOND,
}


def row(template: templates.Template, k: tuple[int, ...], n: tuple[int, ...]) -> list[int]:
    """A line of the tool's log without intensity and mapping; `k` and `n` are trips at its three levels."""
    trips = {"m": np.array(P2), "k": np.array(k[0]), "n": np.array(n[0])}
    gemm = Product("gemm", M, K, N)
    tiles = [2 * k[2] * n[2], 2 * (M // P2) * (K // k[0]), 2 * (M // P2) * (N // n[0])]
    weights = templates.weight_words(template, gemm, trips, np.array(M // P2), np.array(k[1] == n[1] == 1))
    inputs, outputs = templates.input_words(template, gemm, trips), templates.output_words(template, gemm, trips)
    moved = [int(weights), int(inputs), int(outputs)]
    macs, results = M * K * N, M * N
    evicted = (moved[2] + results) // 2
    sizes = [tiles[0], 0, 0, 0, *tiles[1:], 2 * K * N, 2 * M * K, 2 * M * N]
    inner = [macs + moved[0], 0, 0, 0, macs + moved[1], 2 * macs - results + evicted]
    return [sum(tiles), sum(moved), 2 * macs - results, *sizes, *inner, *moved]


def splits(extent: int, outer: bool) -> list[tuple[int, int, int]]:
    """Trips of the loops at the backing store (one unless `outer`) and inside, and the tile."""
    return [(a, b, extent // a // b) for a in (divisors(extent) if outer else [1]) for b in divisors(extent // a)]


@pytest.mark.feature("O17", "O22")
@pytest.mark.parametrize("name", FILES)
def test_every_mapping_of_the_tool_is_met_number_by_number(name: str) -> None:
    with (Path(__file__).parents[1] / "golden" / f"ffmt_32_8_16{name}_p4.raw.csv").open(encoding="utf-8") as file:
        lines = list(csv.reader(file))
    expected = Counter(tuple(int(each) for each in [line[0], line[2], *line[5:]]) for line in lines)
    template = FILES[name]
    ways = product(splits(K, "k" in template.loops), splits(N, "n" in template.loops))
    assert Counter(tuple(row(template, k, n)) for k, n in ways) == expected
    for line in lines:
        assert float(line[1]) == pytest.approx(int(line[5]) / (2 * int(line[2])), rel=1e-5)


@pytest.mark.feature("O17")
@pytest.mark.parametrize(
    ("template", "trips", "kept", "moved"),
    [
        # Words of I, W and O over those of the tensors, from the table of templates; m is cut in 4.
        (templates.FULL, (1, 1), False, (1, 4, 1)),
        (templates.FULL, (1, 1), True, (1, 1, 1)),
        (templates.TILED_K, (2, 1), True, (1, 4, 1)),
        (templates.TILED_N, (1, 2), True, (1, 4, 1)),
        (templates.TILED_KN, (2, 4), False, (4, 4, 1)),
        (templates.TILED_KN, (1, 4), False, (1, 4, 1)),
        (templates.TILED_NK, (2, 4), False, (1, 4, 3)),
        (templates.TILED_NK, (2, 1), False, (1, 4, 1)),
        (templates.FLASH_FIRST, (1, 4), True, (4, 1, 1)),
        (templates.FLASH_FIRST, (1, 4), False, (4, 4, 1)),
        (templates.FLASH_SECOND, (8, 1), True, (1, 1, 15)),
        (templates.FLASH_SECOND, (8, 1), False, (1, 4, 15)),
    ],
)
def test_table_of_templates(
    template: templates.Template, trips: tuple[int, int], kept: bool, moved: tuple[int, int, int]
) -> None:
    gemm = Product("gemm", M, K, N)
    count = {"m": np.array(4), "k": np.array(trips[0]), "n": np.array(trips[1])}
    words = (
        templates.input_words(template, gemm, count),
        templates.weight_words(template, gemm, count, np.array(8), np.array(kept)),
        templates.output_words(template, gemm, count),
    )
    assert [int(each) for each in words] == [moved[0] * M * K, moved[1] * K * N, moved[2] * M * N]


@pytest.mark.parametrize("tile", range(1, 13))
@pytest.mark.parametrize("batches", [1, 2, 3, 4, 12])
def test_a_tile_reads_the_weights_of_every_batch_it_reaches_into(tile: int, batches: int) -> None:
    attention = Product("qk", 12, 2, 2, batches=batches)
    met = {(row // tile, row * batches // 12) for row in range(12)}
    assert int(templates.visits(attention, np.array(-(-12 // tile)), np.array(tile))) == len(met)
