"""Groups and nodes explained: candidates, the taken one among them, bytes as the plan counts them."""

import json

import pytest
from report.explain.replays import replayed
from scheduler.graphs import make_graph

from tilec.analysis.explain.group import MOST, explain_group
from tilec.analysis.explain.node import explain_node
from tilec.analysis.explain.replay import replay
from tilec.analysis.explain.summary import same, summarised
from tilec.artifact import encode
from tilec.ir.expr import constant_value
from tilec.ir.plan import tile_levels
from tilec.report.explain.group_text import group_text, node_text
from tilec.report.explain.summary_text import summary_text
from tilec.spec.recipe import ScheduleOptions
from tilec.spec.resolve import resolve_device

CASES = [
    ("mobilenet-v2", "avx2"),
    ("nerf-mlp", "a100-host"),
    ("nerf-mlp", "ipu-mk2"),
    pytest.param("bert-base", "avx2", marks=pytest.mark.slow),
    pytest.param("bert-base", "ipu-mk2", marks=pytest.mark.slow),
]


@pytest.mark.quick_cases("nerf-mlp-ipu-mk2")
@pytest.mark.parametrize(("name", "device"), CASES)
def test_candidates_and_bytes_of_every_group(name, device):
    found = replayed(name, device)
    plan = found.plan
    for group in plan.groups:
        story = explain_group(found, plan, group)
        assert plan.groups[story.number - 1].name == story.name
        for level in tile_levels(plan.levels, group.variants[0].levels)[1:]:
            for side in ("read", "written"):
                counted = getattr(group.cost, side).get(level.name)
                rows = sum(getattr(row, side) for row in story.bytes if row.level == level.name)
                assert rows == (constant_value(counted) if counted is not None else 0)
        for block in story.blocks:
            taken, *others = block.candidates
            assert taken.chosen
            assert taken.refused is None
            assert taken.candidate.objective == block.joined
            assert not any(other.chosen for other in others)
            assert len(others) < MOST
        assert sum(len(part.nodes) for block in story.blocks for part in block.parts) in (0, len(group.nodes))
        json.dumps(encode(story))
        assert group_text(story).startswith(f"group {story.number}, {story.name}: ")


def test_the_tile_of_the_plan_is_the_taken_one():
    found = replayed("mobilenet-v2", "avx2")
    for group in found.plan.groups:
        (block,) = explain_group(found, found.plan, group).blocks
        assert group.variants[0].tiles.get("l2", {}).get(group.name, {}) == block.candidates[0].candidate.tile
        assert abs(group.cost.picoseconds - block.joined) <= 1


def test_orders_of_tasks_show_where_a_shared_cache_is_small():
    """The order and the raster of the plan come first, and draw the fewest bytes of those that are listed."""
    e = dict.fromkeys("mnk", 2048)
    product = make_graph({"A": (2048, 2048), "B": (2048, 2048)}, [("C[m, n] = sum(k, A[m, k] * B[k, n])", e)], ["C"])
    found = replay(product, resolve_device("a100[levels.l2.capacity=6MiB]"), ScheduleOptions())
    (group,) = found.plan.groups
    (variant,) = group.variants
    (block,) = explain_group(found, found.plan, group).blocks
    drawn = [walk.drawn_bytes for walk in block.walks]
    assert drawn == sorted(set(drawn))
    assert block.walks[0].order == variant.order["smem"]["C"]
    assert block.walks[0].stripe == variant.raster["smem"]["C"] > 1
    assert "orders of its tasks, the taken one first" in group_text(explain_group(found, found.plan, group))


def test_a_node_knows_its_part_and_its_edges():
    found = replayed("mobilenet-v2", "avx2")
    story = explain_node(found, found.plan, "features_0_BatchNormalization")
    assert story.part == ("features_0_Conv", "features_0_BatchNormalization", "features_0_Clip")
    assert [(state.edge, state.connected) for state in story.reads] == [
        ("features_0_Conv->features_0_BatchNormalization", "reg")
    ]
    assert set(story.extents.values()) == {"1", "16", "32"}
    assert story.options
    assert all(option.alone > 0 for option in story.options)
    assert "shares registers with: features_0_Conv features_0_Clip" in node_text(story)
    with pytest.raises(KeyError):
        explain_node(found, found.plan, "nothing")


def test_a_summary_counts_groups_edges_and_plans():
    found = replayed("mobilenet-v2", "avx2")
    summary = summarised(found, found.plan)
    assert summary.same
    assert [group.number for group in summary.groups] == list(range(1, len(found.plan.groups) + 1))
    assert sum(summary.refused.values()) == len(found.refusals)
    (taken,) = [each for each in summary.candidates if each.taken]
    assert taken.cost == min(each.cost for each in summary.candidates)
    assert taken.cost == sum(group.picoseconds for group in summary.groups)
    assert "tilec explain m.tilec --group 1" in summary_text(summary, "m.tilec")


def test_another_plan_is_not_the_same():
    one, other = (replayed("nerf-mlp", "a100", core=core) for core in (None, 16384))
    assert same(one.plan, one.plan)
    assert not same(one.plan, other.plan)
