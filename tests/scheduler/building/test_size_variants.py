"""Variants for classes of sizes: guards from tiles, the last serves all, every one computes the same (B09)."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from tests.scheduler.graphs import make_graph, values_of
from tests.scheduler.models import attention
from tests.scheduler.running import device, run_plan, threaded, tiny
from tilec.ir.bind import bind
from tilec.ir.bind_plan import bind_plan, variant_at
from tilec.ir.bind_program import bind_program
from tilec.ir.evaluate import integer
from tilec.ir.expr import Const
from tilec.ir.graph import Graph
from tilec.ir.lifetimes import statements
from tilec.ir.plan import Plan
from tilec.ir.program import ComputeTile
from tilec.ir.sizes import Constraint, SymbolRange, class_sizes, further_sizes
from tilec.ir.text import parse_expr, text_of
from tilec.ir.verify.program import check_program
from tilec.lower.checks.check_plan import overflows
from tilec.lower.checks.unused_decisions import unused_decisions
from tilec.lower.counts.traffic import traffic
from tilec.lower.lowering import lower
from tilec.scheduler import schedule
from tilec.scheduler.building.largest_sizes import overflows_at_largest
from tilec.spec.device import Bandwidth
from tilec.spec.recipe import ScheduleOptions


def mlp(rows: int | str = "n") -> Graph:
    """A product with an epilogue, its rows vary."""
    texts = [
        ("c[m, o] = sum(k, x[m, k] * w[k, o])", {"m": rows, "o": 96, "k": 64}),
        ("y[m, o] = maximum(c[m, o] + b[o], 0.0)", {"m": rows, "o": 96}),
    ]
    symbols = [rows] if isinstance(rows, str) else []
    return make_graph({"x": (rows, 64)}, texts, ["y"], {"w": (64, 96), "b": (96,)}, symbols)


@cache
def planned(low: int, high: int | None, *likely: int, variants: int = 3, on: str = "zen5-avx512") -> Plan:
    graph = replace(mlp(), symbol_ranges={"n": SymbolRange(low, high, likely=likely)})
    return schedule(graph, device(on), ScheduleOptions(variants=variants))


@pytest.mark.feature("B09", "B13")
def test_guards_follow_tiles_and_the_last_variant_takes_all_sizes() -> None:
    (group,) = planned(0, None, 4096, on="a100").groups
    assert 1 < len(group.variants) <= 3
    assert group.variants[-1].guard == Const(True)
    for variant in group.variants[:-1]:
        rows = max(tiles["y"].get("m", 1) for tiles in variant.tiles.values() if "y" in tiles)
        (least,) = re.findall(r"n >= (\d+)", text_of(variant.guard))
        assert int(least) >= rows
        assert variant.tails == {}
    assert len({variant.kernel for variant in group.variants}) == len(group.variants)


@pytest.mark.feature("B09")
def test_last_tiles_are_narrower_where_that_costs_nothing() -> None:
    """On CPUs what overlaps is computed twice; then one variant may serve all sizes."""
    (group,) = planned(0, None).groups
    for variant in group.variants:
        assert all(tail == "clip" for of in variant.tails.values() for tail in of.values())
    assert group.variants[-1].tails


@pytest.mark.feature("B09", "B13")
def test_a_range_above_the_tiles_needs_one_variant_without_a_guard() -> None:
    (group,) = planned(512, 4096).groups
    assert [text_of(variant.guard) for variant in group.variants] == ["True"]
    assert group.variants[0].tails == {}


@pytest.mark.feature("B09")
def test_the_number_of_variants_is_an_option() -> None:
    (group,) = planned(0, None, variants=1).groups
    assert [text_of(variant.guard) for variant in group.variants] == ["True"]


@pytest.mark.slow_cases("a100")
@pytest.mark.feature("B09", "B13")
@pytest.mark.parametrize("on", ["zen5-avx512", "a100"])
def test_every_variant_is_legal_and_right_at_every_size(on: str) -> None:
    plan, served = planned(0, None, on=on), set()
    for rows in (0, 1, 3, 4, 7, 8, 9, 16, 17, 63, 64, 65, 130):
        sizes = {"n": rows}
        (group,) = plan.groups
        served.add(variant_at(group, sizes).kernel)
        bound = mlp(rows)
        inputs = dict(values_of(replace(bound, outputs=bound.inputs)))
        found = run_plan(plan, inputs, sizes)
        np.testing.assert_allclose(found["y"], values_of(bound)["y"], rtol=1e-4, atol=1e-4)
        shapes = {name: tensor.shape for name, tensor in plan.tensors.items()}
        assert check_program(lower(group, variant_at(group, sizes), plan), shapes, sizes) == ()
    assert served == {variant.kernel for variant in plan.groups[0].variants}


@pytest.mark.feature("B09")
def test_tensors_wait_at_the_same_level_in_all_variants() -> None:
    """At some sizes reduce steps are best, whose sums wait in a core's level, at others none."""
    cpu = device("zen5-avx512")
    speeds = {"dram": "26GB/s", "l3": "93GB/s", "l2": "160GB/s", "l1": "380GB/s"}
    levels = tuple(
        level.model_copy(
            update={"units": min(2, level.units), "bandwidth": Bandwidth.model_validate({"total": speeds[level.name]})}
        )
        if level.name in speeds
        else level
        for level in cpu.levels
    )
    compute = tuple(unit.model_copy(update={"rate": unit.rate // 15}) for unit in cpu.compute)
    extents = {"m": "n", "h": 7, "w": 7, "o": 512}
    texts = [
        ("c[m, h, w, o] = sum(k, x[m, h, w, k] * f[k, o])", {**extents, "k": 2048}),
        ("d[m, h, w, o] = c[m, h, w, o] * s[o] + b[o]", extents),
        ("e[m, h, w, o] = d[m, h, w, o] + r[m, h, w, o]", extents),
        ("y[m, h, w, o] = maximum(e[m, h, w, o], 0.0)", extents),
    ]
    weights = {"f": (2048, 512), "s": (512,), "b": (512,)}
    graph = make_graph({"x": ("n", 7, 7, 2048), "r": ("n", 7, 7, 512)}, texts, ["y"], weights, ["n"])
    graph = replace(graph, symbol_ranges={"n": SymbolRange(likely=(8,))})
    plan = schedule(graph, cpu.model_copy(update={"levels": levels, "compute": compute}), ScheduleOptions())
    for group in plan.groups:
        for variant in group.variants:
            assert unused_decisions(group, variant, plan, lower(group, variant, plan)) == ()


@pytest.mark.feature("B09", "B24")
@pytest.mark.parametrize(
    ("graph", "likely", "others"),
    [
        (mlp(), {"n": 37}, [{"n": 1}, {"n": 90}]),
        pytest.param(
            attention("batch", "seq"),
            {"batch": 2, "seq": 37},
            [{"batch": 1, "seq": 1}, {"batch": 3, "seq": 90}],
            marks=pytest.mark.slow,
        ),
    ],
    ids=["rows", "attention"],
)
def test_costs_are_those_of_the_program_at_the_pivots(
    graph: Graph, likely: dict[str, int], others: list[dict[str, int]]
) -> None:
    ranges = {symbol: SymbolRange(1, 90, likely=(size,)) for symbol, size in likely.items()}
    plan = schedule(replace(graph, symbol_ranges=ranges), tiny("explicit", 64))
    for group in plan.groups:
        for sizes in (likely, *others):
            program = lower(group, variant_at(group, sizes), plan)
            moved = traffic(program, sizes)
            assert traffic(bind_program(program, sizes)) == moved
            if sizes == likely:
                assert group.cost.written == {level: Const(each.written) for level, each in moved.items()}


@pytest.mark.slow
@pytest.mark.feature("B09", "W24")
@pytest.mark.parametrize(("high", "long"), [(16, 200), (None, 200), (None, 700)])
def test_every_variant_fits_at_the_largest_sizes(high: int | None, long: int) -> None:
    """A tile for few rows that takes whole ones would exceed a scratchpad where rows are long, and one for a single
    item where there are many."""
    ranges = {"batch": SymbolRange(1, high), "seq": SymbolRange(1, long)}
    plan = schedule(replace(attention("batch", "seq"), symbol_ranges=ranges), tiny("explicit", 64))
    assert long > 200 or max(len(group.variants) for group in plan.groups) > 1
    plan = replace(plan, symbol_ranges=ranges | {"batch": SymbolRange(1, high or 1 << 20)})
    for group in plan.groups:
        for variant in group.variants:
            assert overflows(lower(group, variant, plan)) == ()


def looked_up(rows: int | str) -> Graph:
    """Rows of a product beside those of a table that has fewer than there may be."""
    extents = {"m": rows, "o": 64}
    texts = [
        ("c[m, o] = sum(k, x[m, k] * w[k, o])", {**extents, "k": 256}),
        ("y[m, o] = c[m, o] * t[minimum(m, 2047), o // 2]", extents),
    ]
    return make_graph({"x": (rows, 256)}, texts, ["y"], {"w": (256, 64), "t": (2048, 32)}, [rows])


def filtered(channels: int = 32) -> Graph:
    """A product of pixels and a filter over its results, of which tiles need more than they make."""
    extents: dict[str, int | str] = {"n": "batch", "h": "height", "w": "width", "o": channels}
    inside = "h + r - 1 >= 0 and h + r - 1 < height and (w + s - 1 >= 0 and w + s - 1 < width)"
    texts = [
        ("c[n, h, w, o] = sum(k, x[n, h, w, k] * a[k, o])", {**extents, "k": 16}),
        (
            f"d[n, h, w, o] = sum(r, s, where({inside}, c[n, h + r - 1, w + s - 1, o], 0.0) * f[r, s, o])",
            {**extents, "r": 3, "s": 3},
        ),
        ("y[n, h, w, o] = maximum(d[n, h, w, o] + b[o], 0.0)", extents),
    ]
    weights = {"a": (16, channels), "f": (3, 3, channels), "b": (channels,)}
    symbols = ["batch", "height", "width"]
    graph = make_graph({"x": ("batch", "height", "width", 16)}, texts, ["y"], weights, symbols)
    return replace(graph, symbol_ranges={s: SymbolRange(2, divisor=8) for s in symbols[1:]})


@pytest.mark.quick_cases("looked-up-tiny")
@pytest.mark.feature("B09", "W24")
@pytest.mark.parametrize("on", ["a100", "tiny"])
@pytest.mark.parametrize(
    "graph",
    [attention("batch", "seq"), looked_up("seq"), filtered()],
    ids=["attention", "looked-up", "filtered"],
)
def test_every_variant_fits_where_sizes_have_no_end(graph: Graph, on: str) -> None:
    """Rows of scores that wait in a scratchpad as a whole, and whole tables, exceed it at large sizes."""
    plan = schedule(graph, device(on) if on == "a100" else tiny("explicit", 64))
    assert on == "tiny" or any(len(group.nodes) > 1 for group in plan.groups)
    for group in plan.groups:
        for variant in group.variants:
            assert overflows_at_largest(replace(plan, groups=(group,)), variant) == ()


@pytest.mark.feature("B09")
def test_sizes_that_decisions_are_looked_at_for() -> None:
    ranges = {"seq": SymbolRange(8, 512, 8, (128, 384)), "batch": SymbolRange(0, 16)}
    assert further_sizes(["seq", "batch"], ranges) == ({"seq": 384, "batch": 16},)
    assert further_sizes(["n"], {}) == ({"n": 512},)
    assert further_sizes(["n"], {"n": SymbolRange(4, 4)}) == ()
    assert class_sizes(["seq", "batch"], ranges) == (
        {"seq": 8, "batch": 16},
        {"seq": 128, "batch": 1},
        {"seq": 64, "batch": 16},
        {"seq": 16, "batch": 16},
        {"seq": 8, "batch": 4},
        {"seq": 8, "batch": 1},
    )


def test_a_static_graph_has_one_variant() -> None:
    plan = schedule(bind(mlp(), {"n": 40}), device("zen5-avx512"))
    assert [len(group.variants) for group in plan.groups] == [1]
    assert bind_plan(plan, {}) is plan
    assert integer(plan.groups[0].variants[0].guard, {})


REDUCTIONS = {
    "rows": ("y[m] = sum(k, x[m, k])", "m", (65536, 108), (64, 65536)),
    "columns": ("y[k] = sum(m, x[m, k])", "k", (16, 65536), (1 << 20, 1024)),
}


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param("rows", marks=pytest.mark.feature("B09", "B11")),
        pytest.param("columns", marks=pytest.mark.feature("B09", "B12")),
    ],
)
def test_reductions_have_schedules_for_few_and_many_rows(kind: str) -> None:
    """Many short rows are several to a block, few long ones one to a block in long steps; a limit in the guard, above
    what the tile needs, tells them apart. So do columns."""
    text, along, rows, columns = REDUCTIONS[kind]
    graph = make_graph({"x": ("R", "C")}, [(text, {"m": "R", "k": "C"})], ["y"], {}, ["R", "C"])
    ranges = {"R": SymbolRange(1, 1 << 20, likely=rows), "C": SymbolRange(1, 1 << 20, likely=columns)}
    plan = schedule(replace(graph, symbol_ranges=ranges), threaded("a100[levels.smem.asynchronous=false]"))
    (group,) = plan.groups
    tiles = []
    for at in zip(rows, columns, strict=True):
        variant = variant_at(group, dict(zip("RC", at, strict=True)))
        (steps,) = variant.steps["smem"]["y"].values()
        tiles.append((variant.tiles["smem"]["y"].get(along, 1), steps))
    assert tiles[0] != tiles[1]
    (guard,) = {text_of(each.guard) for each in group.variants[:-1]}
    assert int(guard.split(">= ")[1]) > 50 * max(tile for tile, _ in tiles)
    for at in ((40, 30), (4096, 8), (3, 3000)):
        sizes = dict(zip("RC", at, strict=True))
        bound = bind(graph, sizes)
        found = run_plan(plan, dict(values_of(replace(bound, outputs=bound.inputs))), sizes)
        np.testing.assert_allclose(found["y"], values_of(bound)["y"], rtol=1e-4, atol=1e-3)


@pytest.mark.feature("B09")
@pytest.mark.parametrize("on", ["zen5-avx512", "a100", "ipu-mk2"])
def test_sizes_that_broadcast_have_variants_for_equal_ones_and_one_for_others(on: str) -> None:
    texts = [("y[i, j] = x[minimum(i, a - 1), j] + z[minimum(i, c - 1), j]", {"i": "where(a == 1, c, a)", "j": "n"})]
    graph = make_graph({"x": ("a", "n"), "z": ("c", "n")}, texts, ["y"], {}, ["a", "c", "n"])
    fits = Constraint(parse_expr("a == c or a == 1 or c == 1"))
    plan = schedule(replace(graph, constraints=(fits,)), device(on), ScheduleOptions())
    (group,) = plan.groups
    assert all("a == c" in text_of(variant.guard) for variant in group.variants[:-1])
    assert group.variants[-1].guard == Const(True)
    assert len({variant.kernel for variant in group.variants}) == len(group.variants)
    assert len(group.variants) > 1 or on == "ipu-mk2"  # plans of several levels of tiles have one variant
    for variant in group.variants[:-1]:
        tiles = [s for s in statements(lower(group, variant, plan).body) if isinstance(s, ComputeTile)]
        assert {text_of(tile.expr.body) for tile in tiles} == {"x[i, j] + z[i, j]"}
    for rows, others, columns in ((5, 5, 9), (1, 5, 9), (5, 1, 9), (0, 1, 3), (70, 70, 130), (130, 1, 70)):
        sizes = {"a": rows, "c": others, "n": columns}
        rng = np.random.default_rng(rows)
        arrays = {"x": rng.random((rows, columns), np.float32), "z": rng.random((others, columns), np.float32)}
        assert (variant_at(group, sizes) is group.variants[-1]) == (rows != others) or on == "ipu-mk2"
        np.testing.assert_array_equal(run_plan(plan, arrays, sizes)["y"], arrays["x"] + arrays["z"])
