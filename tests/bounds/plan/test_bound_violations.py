"""What moves less than its bounds."""

from __future__ import annotations

from dataclasses import replace

import pytest
from report.plans import group, layers, plan

from bounds.graphs import mlp
from tilec.bounds.einsum.oro_plus import oro_plus
from tilec.bounds.levels import LevelCapacity, level_capacities
from tilec.bounds.plan.bound_violations import Finding, bound_violations, mapping_of, moved_by
from tilec.bounds.plan.plan_bounds import with_bounds
from tilec.ir.expr import Const
from tilec.ir.plan import Bound, Group, Plan
from tilec.scheduler import schedule
from tilec.spec.recipe import ScheduleOptions
from tilec.spec.resolve import resolve_device

LEAST = 4 * (64 * 16 + 16 * 32 + 64 * 32)
"""Bytes of x, w and r."""


def moving(first: Group, read: int, known: int | None = None) -> Plan:
    """The network whose first group reads so much into smem."""
    cost = replace(first.cost, read={"smem": Const(read)})
    others = (replace(each, cost=replace(each.cost, read={"smem": Const(1 << 20)})) for each in layers()[1:])
    made = with_bounds(
        plan(replace(first, cost=cost), *others), [LevelCapacity("smem", "dram", 1 << 16, 1, None)], oro_plus
    )
    if known is None:
        return made
    first = replace(made.groups[0], bounds={"smem": Bound(LEAST, known)})
    return replace(made, groups=(first, *made.groups[1:]))


def test_less_than_is_needed_is_proved_wrong():
    first = layers()[0]
    assert bound_violations(moving(first, LEAST - 512), find=oro_plus) == ()
    (found,) = bound_violations(moving(first, LEAST - 513), find=oro_plus)
    assert found == Finding("r", "smem", LEAST - 1, LEAST, True, "smem r m:16 n:32", "")
    assert str(found) == f"group r moves {LEAST - 1} bytes at smem with smem r m:16 n:32, any mapping moves {LEAST}"


def test_an_edited_bound_proves_nothing():
    edited = moving(layers()[0], 8)
    edited = replace(edited, groups=tuple(replace(g, bounds={"smem": Bound(0, 0)}) for g in edited.groups))
    assert next(each.bound for each in bound_violations(edited, find=oro_plus) if each.proved) == LEAST


def test_less_than_was_known_is_a_counterexample_with_its_mapping():
    (found,) = bound_violations(moving(layers()[0], LEAST, known=LEAST + 513), find=oro_plus)
    assert (found.proved, found.moved, found.bound) == (False, LEAST + 512, LEAST + 513)
    assert (found.mapping, found.because) == ("smem r m:16 n:32", "1 run")


def test_what_the_machine_does_not_count_is_not_looked_at():
    """It counts loads; what tiles read in place the plan alone has."""
    direct = group("h r", {"h->r": "reg"}, loads={"x": ("smem",), "w": ()})
    made = moving(direct, LEAST)
    assert bound_violations(made, {"r": {"smem": 7}}, oro_plus) == ()
    assert bound_violations(moving(direct, 7), find=oro_plus)


def test_what_a_run_counted_is_looked_at_like_the_plan():
    made = moving(layers()[0], LEAST)
    assert bound_violations(made, {"r": {"smem": LEAST}}, oro_plus) == ()
    (found,) = bound_violations(made, {"r": {"smem": 7}}, oro_plus)
    assert (found.group, found.moved, found.proved) == ("r", 7, True)


def test_all_groups_together_owe_what_enters_and_leaves():
    made = moving(layers()[0], LEAST)
    nothing = {name: Const(0) for name in ("smem",)}
    idle = tuple(replace(g, bounds={"smem": Bound(0)}, cost=replace(g.cost, read=nothing)) for g in made.groups)
    found = bound_violations(replace(made, groups=idle), find=oro_plus)
    assert [each.group for each in found if each.proved] == ["r", "g", "y", "net"]


def test_mappings_tell_tiles_and_steps_of_every_level():
    found = group("h", tile={"m": 8, "n": 4}, steps={"smem": {"h": {"k": 2}}})
    assert mapping_of(found) == "smem h m:8 n:4 h steps k:2"
    bare = replace(found, variants=(replace(found.variants[0], tiles={}, steps={}),))
    assert mapping_of(bare) == "whole"
    assert moved_by(found, "smem") == 4096 + 512
    assert moved_by(found, "reg") == 0


@pytest.mark.slow_cases("a100-full", "a100-register")
@pytest.mark.parametrize("fusion", ["none", "register", "full"])
@pytest.mark.parametrize("device", ["a100", "zen5-avx512", "ipu-mk2"])
def test_no_plan_of_a_network_is_below_what_is_proved(fusion: str, device: str):
    spec = resolve_device(device)
    made = schedule(mlp(), spec, ScheduleOptions(fusion=fusion))
    found = bound_violations(with_bounds(made, level_capacities(spec), oro_plus), find=oro_plus)
    assert not any(each.proved for each in found), found
