"""Caches that hold no tiles: predictions beside a simulation of lines, least recently used first out."""

from __future__ import annotations

from dataclasses import replace

import pytest
from lower.cases import Case
from lower.counts.lru import Lru, run
from scheduler.models import attention
from scheduler.running import device

from tilec.ir.plan import Plan, PlanLevel, tile_levels
from tilec.ir.program_text import program_text
from tilec.lower.counts.cache_traffic import CacheLevel, Touched, cache_levels, cache_traffic
from tilec.lower.counts.retention import Run, traffic_of_runs
from tilec.lower.lowering import lower
from tilec.scheduler import schedule

DRAM = PlanLevel("dram", None, transaction=32)
SMEM = PlanLevel("smem", None, 4, "explicit", "block")
LEVELS = (DRAM, SMEM, PlanLevel("reg", None))


def product(rows: int, columns: int, order: tuple[str, ...] = ("m", "n"), stripe: int = 1) -> Case:
    """256 x 256 x 256 in tiles of `rows` x `columns` at four blocks, in stripes of the outer loop."""
    return Case(
        ["C[m, n] = sum(k, A[m, k] * B[k, n])"],
        {"m": 256, "n": 256, "k": 256},
        {"A": (256, 256), "B": (256, 256)},
        {"smem": {"C": {"m": rows, "n": columns}}},
        {"smem": {"C": {"k": 32}}},
        levels=LEVELS,
        more={"order": {"smem": {"C": order}}, "raster": {"smem": {"C": stripe}}},
    )


def cache(capacity: int, instances: int = 1) -> CacheLevel:
    return CacheLevel("l2", "smem", capacity, instances, 4)


def simulated(case: Case, capacity: int) -> tuple[int, int]:
    lines = Lru(capacity)
    run(case.program(), [lines], "smem", 4, {})
    lines.flush({"C": 256 * 256 * 4}, lines.places)
    return lines.fetched, lines.written


@pytest.mark.parametrize("order", [("m", "n"), ("n", "m")])
@pytest.mark.parametrize("capacity", [1 << 15, 1 << 17, 1 << 18, 1 << 19, 1 << 20])
@pytest.mark.parametrize("tile", [(32, 64), (128, 32)])
def test_a_product_moves_what_lines_move(tile: tuple[int, int], capacity: int, order: tuple[str, ...]) -> None:
    """Within 15 % but where the capacity lies between a loop that fits and one that does not."""
    case = product(*tile, order)
    fetched, written = simulated(case, capacity)
    found = cache_traffic(case.program(), cache(capacity))
    predicted = sum(each.fetched for each in found.values())
    assert sum(each.written for each in found.values()) == written == 256 * 256 * 4
    near = [
        sum(t.fetched for t in cache_traffic(case.program(), cache(c)).values())
        for c in (capacity * 3 // 4, capacity * 4 // 3)
    ]
    assert 0.85 * near[1] <= fetched <= 1.15 * near[0]
    assert 2 * 256 * 256 * 4 <= predicted <= sum(t.fetched for t in cache_traffic(case.program(), cache(0)).values())


@pytest.mark.feature("W35")
@pytest.mark.parametrize("stripe", [2, 3, 4])
def test_a_raster_moves_what_lines_move(stripe: int) -> None:
    """Of 8 x 8 tiles four run at once: with a stripe of 2 every two of them share rows and every two columns. Where
    stripes are ragged a cache that nearly holds one is left out."""
    case = product(32, 32, stripe=stripe)
    assert f"for m_C_smem in 8 spread over block in stripes of {stripe}:" in program_text(case.program())
    for capacity in (1 << 16, 1 << 17)[: 1 if 8 % stripe else 2]:
        fetched, _ = simulated(case, capacity)
        predicted = sum(each.fetched for each in cache_traffic(case.program(), cache(capacity)).values())
        assert predicted == pytest.approx(fetched, rel=0.2 if 8 % stripe else 0.15)
    rows, square = (cache_traffic(product(32, 32, stripe=s).program(), cache(1 << 16)) for s in (1, 2))
    whole = 256 * 256 * 4
    assert (rows["A"].fetched, rows["B"].fetched) == (2 * whole, 8 * whole)
    assert (square["A"].fetched, square["B"].fetched) == (4 * whole, 4 * whole)


def test_tasks_side_by_side_fetch_what_they_share_once() -> None:
    """Four tasks of a row share A's rows; without a cache each fetches them."""
    case = product(64, 64)
    none, small = (cache_traffic(case.program(), cache(size)) for size in (0, 100_000))
    assert none["A"].fetched == 256 * 256 * 4
    assert small["B"].fetched == 4 * 256 * 256 * 4
    assert cache_traffic(case.program(), cache(1 << 20))["B"].fetched == 256 * 256 * 4


def test_instances_fetch_what_they_share_each() -> None:
    case = product(64, 64)
    found = cache_traffic(case.program(), cache(1 << 20, instances=2))
    assert (found["A"].fetched, found["B"].fetched) == (256 * 256 * 4, 2 * 256 * 256 * 4)


@pytest.mark.feature("W07")
@pytest.mark.parametrize("capacity", [1 << 13, 1 << 18])
def test_blocks_in_a_tile_of_a_level_below_have_tasks_of_their_own(capacity: int) -> None:
    """Two products that pass H on in the memory below a cache, 64 rows at a time: H goes there and back once, B comes
    for each of the 16 rows of tiles that make H."""
    case = Case(
        ["H[m, n] = sum(k, A[m, k] * B[k, n])", "C[m, p] = sum(n, H[m, n] * D[n, p])"],
        {"m": 256, "n": 256, "k": 256, "p": 64},
        {"A": (256, 256), "B": (256, 256), "D": (256, 64)},
        {"dram": {"C": {"m": 64}}, "smem": {"H": {"m": 16, "n": 32}, "C": {"m": 32, "p": 32}}},
        {"smem": {"H": {"k": 32}, "C": {"n": 64}}},
        levels=(PlanLevel("host", None), *LEVELS),
    )
    found = cache_traffic(case.program(), cache(capacity))
    lines = Lru(capacity)
    run(case.program(), [lines], "smem", 4, {})
    assert sum(each.fetched for each in found.values()) == pytest.approx(lines.fetched, rel=0.15)
    whole = 256 * 256 * 4
    assert (found["H"].written, found["H"].fetched, found["B"].fetched) == (whole, whole, 16 * whole)


@pytest.mark.parametrize(
    ("texts", "reads"),
    [(["M[s] = X[s] * 2.0", "Y[s, r] = A[s, r] - M[s] * X[s]"], 2), (["Y[s, r] = A[s, r] - X[s]"], 1)],
)
def test_what_tiles_read_that_may_be_empty_others_read_too(texts: list[str], reads: int) -> None:
    """Six threads read X for the columns of a block, of which the last one has three; M is computed once for each."""
    case = Case(
        texts,
        {"s": 5, "r": 9},
        {"A": (5, 9), "X": (5,)},
        {"smem": {"Y": {"s": 1, "r": 6}}, "reg": {"Y": {"s": 1, "r": 1}}},
        connect={"M": "smem"} if reads > 1 else {},
        levels=(DRAM, SMEM, PlanLevel("reg", None, 8, scope="thread")),
        more={"tails": {"smem": {"Y": "clip"}}, "loads": {"X": ("smem",)}},
    )
    found = cache_traffic(case.program(), CacheLevel("l1", "reg", 0, 1, 8))
    assert (found["X"].fetched, found["A"].fetched) == (reads * 5 * 2 * 4, 5 * 9 * 4)


def test_what_data_index_is_met_once_at_most() -> None:
    texts = ["Y[s, c] = T[I[s], c] * 2.0"]
    tiles = {"smem": {"Y": {"s": 8}}}
    case = Case(texts, {"s": 64, "c": 16}, {"T": (1000, 16), "I": (64,)}, tiles, levels=LEVELS, ttypes={"I": "i64"})
    assert cache_traffic(case.program(), cache(1 << 20))["T"].distinct == 64 * 16 * 4
    few = replace(case, inputs={"T": (10, 16), "I": (64,)})
    assert cache_traffic(few.program(), cache(1 << 20))["T"].distinct == 10 * 16 * 4


def test_one_index_of_data_beside_a_window_of_the_same_tensor() -> None:
    """A gathered row without iterators in its index has fewer spans than the window."""
    texts = ["Y[s, c] = T[I[0], c] + T[s, c]"]
    case = Case(texts, {"s": 8, "c": 16}, {"T": (1000, 16), "I": (1,)}, levels=LEVELS, ttypes={"I": "i64"})
    assert cache_traffic(case.program(), cache(1 << 20))["T"].distinct == (8 + 1) * 16 * 4


def test_caches_are_the_levels_without_tiles() -> None:
    levels = schedule(attention(), device("zen5-avx512")).levels
    assert [level.name for level in levels] == ["dram", "l3", "l2", "l1", "reg"]
    low, high = cache_levels(levels, ["dram", "l2", "reg"])
    assert (low.name, low.above, low.instances, low.cores, low.write_allocate) == ("l3", "l2", 1, 8, True)
    assert (high.name, high.above, high.instances, high.cores) == ("l1", "reg", 8, 8)
    assert [level.units for level in tile_levels(levels, ["dram", "l2", "reg"])] == [1, 8, 1]


READS = Touched(100.0, 0.0, 100.0)
WRITES = Touched(0.0, 100.0, 100.0)


def moved(runs: list[dict[str, Touched]], capacity: int, allocates: bool = False) -> list[tuple[int, int]]:
    level = CacheLevel("l2", "smem", capacity, 1, 4, allocates)
    found = traffic_of_runs([Run(str(n), touched) for n, touched in enumerate(runs)], level, {"z"})
    return [(each.read, each.written) for each in found]


def test_a_result_that_stays_is_neither_written_nor_fetched() -> None:
    chain = [{"x": READS, "y": WRITES}, {"y": READS, "z": WRITES}]
    assert moved(chain, 1000) == [(100, 0), (0, 100)]
    assert moved(chain, 150) == [(100, 100), (100, 100)]
    assert moved(chain, 1000, allocates=True) == [(200, 0), (100, 100)]


def test_the_part_that_stays_is_what_fits() -> None:
    """Of y and x, 200 bytes, 250 hold all and half of what comes behind."""
    between = {"a": Touched(100.0, 0.0, 100.0)}
    (_, first), _, (last, _) = moved([{"x": READS, "y": WRITES}, between, {"y": READS, "z": WRITES}], 300)
    assert (first, last) == (0, 0)
    (_, first), _, (last, _) = moved([{"y": WRITES}, between, {"y": READS, "b": READS, "z": WRITES}], 300)
    assert first == last - 100 == 50


def test_the_place_of_a_result_that_nobody_reads_is_used_again() -> None:
    chain = [{"x": READS, "a": WRITES}, {"a": READS, "b": WRITES}, {"b": READS, "c": WRITES}, {"c": READS, "z": WRITES}]
    # Places of a and b; c takes that of a. The result z has a place of its own.
    assert [read for read, _ in moved(chain, 1000, allocates=True)] == [200, 100, 0, 100]


def test_constants_are_fetched_once_and_again_when_they_were_evicted() -> None:
    runs = [{"w": READS}, {"v": Touched(500.0, 0.0, 500.0)}, {"w": READS}]
    assert moved(runs, 1000) == [(100, 0), (500, 0), (0, 0)]
    assert moved(runs, 400) == [(100, 0), (500, 0), (100, 0)]


@pytest.mark.quick_cases("zen5-avx512")
@pytest.mark.feature("W07")
@pytest.mark.parametrize("name", ["a100", "v100", "zen5-avx512"])
def test_plans_move_what_lines_move(name: str) -> None:
    plan = schedule(attention(), device(name))
    read = sum(group.cost.read[plan.levels[1].name].value for group in plan.groups)  # type: ignore[union-attr]
    lines = lines_of(plan)
    assert 0.85 * lines <= read <= 1.15 * lines


def lines_of(plan: Plan) -> int:
    """Bytes that lines fetch; tensors lie apart."""
    (level, *_) = cache_levels(plan.levels, [name for g in plan.groups for name in g.variants[0].levels])
    lines = [Lru(int(level.capacity), level.write_allocate) for _ in range(level.instances)]
    for group in plan.groups:
        run(lower(group, group.variants[0], plan), lines, level.above, level.cores, {})
    return sum(each.fetched for each in lines)
