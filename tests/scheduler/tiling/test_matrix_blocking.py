"""Units of matrices in plans: chosen where they are predicted to pay, with layouts, paddings and types of sums."""

from collections.abc import Mapping
from functools import cache

import numpy as np
import pytest
from scheduler.graphs import make_graph
from scheduler.running import device, illegal, run_plan

from tilec.errors import ConfigError
from tilec.ir.evaluate import evaluate
from tilec.ir.graph import Graph
from tilec.ir.plan import Plan
from tilec.scheduler.schedule import schedule
from tilec.scheduler.tiling.bank_layouts import Pieces
from tilec.spec.recipe import ScheduleOptions
from tilec.spec.resolve import resolve_device

F16 = "mma.m16n8k16.f16"


def product(m: int, n: int, k: int, ttype: str = "f16", after: bool = True) -> Graph:
    """A product with constant weights, a bias and a rectifier."""
    nodes: list[tuple[str, Mapping[str, int | str]]] = [
        ("c[m, n] = sum(k, x[m, k] * w[k, n])", {"m": m, "n": n, "k": k}),
        ("y[m, n] = maximum(c[m, n] + b[n], 0.0)", {"m": m, "n": n}),
    ]
    constants = {"w": (k, n), "b": (n,)} if after else {"w": (k, n)}
    types = dict.fromkeys(("x", "w", "b"), ttype)
    return make_graph({"x": (m, k)}, nodes if after else nodes[:1], ["y" if after else "c"], constants, ttypes=types)


@cache
def planned(m: int, n: int, k: int, ttype: str = "f16", after: bool = True) -> Plan:
    return schedule(product(m, n, k, ttype, after), device("a100"))


@pytest.mark.feature("W28", "L13")
@pytest.mark.parametrize("after", [False, True])
def test_products_of_halves_run_on_tensor_cores_and_sum_in_f32(after: bool) -> None:
    plan = planned(256, 512, 384, after=after)
    (group,) = plan.groups
    (variant,) = group.variants
    assert variant.units == {"c": F16}
    assert {tensor: of for level in variant.held.values() for tensor, of in level.items()}["c"] == "f32"
    assert set(variant.swizzles) == {"smem"}
    assert illegal(plan) == []
    vectors = schedule(product(256, 512, 384, after=after), device("a100"), ScheduleOptions(units=("fma",)))
    assert not any(each.units for group in vectors.groups for each in group.variants)
    assert vectors.groups[0].cost.picoseconds > 1.5 * group.cost.picoseconds


@pytest.mark.feature("L22")
def test_reduce_loops_begin_loads_ahead_where_copies_are_asynchronous() -> None:
    """Both operands have as many copies, all of which fit a block; without such copies the plan takes longer."""
    plan = planned(256, 512, 384)
    (copies,) = (variant.copies["smem"] for group in plan.groups for variant in group.variants)
    assert set(copies) == {"x", "w"}
    assert len(set(copies.values())) == 1
    assert illegal(plan) == []
    waiting = schedule(product(256, 512, 384), resolve_device("a100[levels.smem.asynchronous=false]"))
    assert not any(variant.copies for group in waiting.groups for variant in group.variants)
    assert plan.groups[0].cost.picoseconds < 0.95 * waiting.groups[0].cost.picoseconds


def test_reduce_steps_are_whole_depths_of_a_unit() -> None:
    """Zeros would fill the rest of every step."""
    (group,) = planned(1024, 3072, 768).groups
    assert group.variants[0].steps["smem"]["c"]["k"] % 16 == 0


@pytest.mark.feature("W37")
def test_rows_of_packed_constants_are_as_long_as_the_iterator_that_they_are_packed_along() -> None:
    """Rows of the weights are 768 elements long, but those of a head 64."""
    nodes: list[tuple[str, Mapping[str, int | str]]] = [
        ("c[m, n] = sum(h, d, i32(x[m, h, d]) * i32(w[h*64 + d, n]))", {"m": 128, "n": 768, "h": 12, "d": 64})
    ]
    types = {"x": "i8", "w": "i8", "c": "i32"}
    plan = schedule(make_graph({"x": (128, 12, 64)}, nodes, ["c"], {"w": (768, 768)}, ttypes=types), device("a100"))
    assert plan.groups[0].variants[0].swizzles["smem"]["w_packed"] == 64
    assert illegal(plan) == []


def test_units_that_a_recipe_names_are_those_of_the_device() -> None:
    with pytest.raises(ConfigError, match=r"a100 has no compute unit 'fmaa'") as caught:
        schedule(product(256, 512, 384), device("a100"), ScheduleOptions(units=("fmaa",)))
    assert (caught.value.place, caught.value.hint) == ("schedule.units", "Did you mean 'fma'?")


def test_the_sums_are_right_and_rounded_once() -> None:
    graph = product(40, 24, 50)
    plan = schedule(graph, device("a100"))
    assert any(variant.units for group in plan.groups for variant in group.variants)
    x = np.random.default_rng(3).normal(size=(40, 50)).astype(np.float16)
    found = run_plan(plan, {"x": x})["y"]
    arrays = {"x": x.astype(np.float64)}
    for name, constant in graph.constants.items():
        shape = [int(e.value) for e in graph.tensors[name].shape]  # type: ignore[union-attr]
        arrays[name] = np.asarray(constant.values, np.float16).reshape(shape).astype(np.float64)  # type: ignore[union-attr]
    for node in graph.nodes:
        arrays[node.name] = evaluate(node.expr, arrays, ttype="f64")
    assert np.abs(found - arrays["y"]).max() <= np.abs(arrays["y"]).max() * 2**-10


@pytest.mark.parametrize(("m", "ttype"), [(1, "f16"), (256, "f32")])
def test_a_single_row_and_other_types_stay_on_vectors(m: int, ttype: str) -> None:
    assert not any(variant.units for group in planned(m, 512, 384, ttype).groups for variant in group.variants)


def test_weights_of_convolutions_are_packed_along_the_depth() -> None:
    inside = "0 <= h + r - 1 < 16 and 0 <= w + s - 1 < 16"
    text = f"y[h, w, o] = sum(r, s, c, where({inside}, x[h + r - 1, w + s - 1, c], 0.0) * k[o, c, r, s])"
    graph = make_graph(
        {"x": (16, 16, 64)},
        [(text, {"h": 16, "w": 16, "o": 64, "r": 3, "s": 3, "c": 64})],
        ["y"],
        {"k": (64, 64, 3, 3)},
        ttypes={"x": "f16", "k": "f16"},
    )
    plan = schedule(graph, device("a100"))
    units = {name: unit for group in plan.groups for name, unit in group.variants[0].units.items()}
    assert set(units.values()) == {F16}
    (packed,) = plan.prepared
    assert packed.expr.spatial[-1] == "c"
    assert illegal(plan) == []


@pytest.mark.feature("W37")
@pytest.mark.parametrize(
    ("row", "pad", "swizzle"),
    [(16, 0, 0), (30, 2 + 16, 0), (32, 0, 32), (64, 0, 64), (80, 0, 0), (96, 16, 0), (128, 0, 128), (256, 0, 128)],
)
def test_rows_are_swizzled_where_they_fill_panels_and_padded_elsewhere(row: int, pad: int, swizzle: int) -> None:
    found = Pieces(16, 128).layout(row)
    assert (found.pad, found.swizzle) == (pad, swizzle)
    assert found.read == 1, "eight rows below one another lie in all banks"
    assert (found.written == 1) == (row not in (30, 96))


@pytest.mark.feature("W37")
def test_rows_of_wide_results_are_padded_by_what_lanes_store_of_one() -> None:
    """Four lanes store 32 bytes of f32 sums: pieces of two rows would meet where one is permuted."""
    found = Pieces(16, 128).layout(128, beside=2)
    assert (found.pad, found.swizzle, found.read) == (32, 0, 1)
    assert Pieces(16, 128).layout(128, beside=8) == Pieces(16, 128).layout(128, beside=99)


@pytest.mark.feature("W37")
def test_steps_whose_rows_are_written_without_conflicts_are_taken() -> None:
    """Halves of 768 are 96 and 48, whose rows no layout serves in the fewest wavefronts."""
    (group,) = planned(1024, 3072, 768).groups
    (variant,) = group.variants
    assert variant.steps["smem"]["c"]["k"] in (32, 64)
    assert set(variant.swizzles["smem"]) == {"x", "w", "y"}
    assert not variant.pads


@pytest.mark.feature("L21", "W28")
def test_groups_of_warps_multiply_out_of_memory_where_these_are_faster() -> None:
    """Whole groups along the rows, which are the innermost tile loop; registers of all warps fit a core."""
    plan = schedule(product(1024, 3072, 768), device("h100"))
    (variant,) = (variant for group in plan.groups for variant in group.variants)
    assert variant.units == {"c": "wgmma.m64n256k16.f16"}
    block, warp = variant.tiles["smem"]["y"], variant.tiles["reg"]["y"]
    assert warp["m"] == 16
    assert block["m"] % 64 == 0
    assert block["n"] % warp["n"] == 0
    assert variant.order["reg"]["y"][-1] == "m"
    assert set(variant.swizzles["smem"]) == {"x", "w", "y"}
    assert (block["m"] // 16) * (block["n"] // warp["n"]) * (16 * warp["n"] + 64 * 32) * 4 <= 256 << 10
    assert illegal(plan) == []
    alone = ScheduleOptions(units=("fma", "mma.m16n8k16.f16"))
    slower = schedule(product(1024, 3072, 768), device("h100"), alone)
    assert slower.groups[0].cost.picoseconds > plan.groups[0].cost.picoseconds


@pytest.mark.parametrize(("m", "k"), [(48, 384), (256, 360)])
def test_rows_without_whole_groups_and_steps_of_part_of_a_depth_stay_with_single_warps(m: int, k: int) -> None:
    plan = schedule(product(m, 512, k), device("h100"))
    assert not any("wgmma" in unit for group in plan.groups for unit in group.variants[0].units.values())


def test_three_copies_are_kept_where_two_wait_for_what_loads_stream() -> None:
    plan = schedule(product(4096, 4096, 4096), device("h100"))
    assert set(plan.groups[0].variants[0].copies["smem"].values()) == {3}
