"""Plans of the zoo are obeyed: another size of any one tile gives another kernel, or a code refuses it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from scheduler.running import tiny

from acceptance.miniatures import SMALL
from acceptance.test_plans import small
from tilec.codegen.cpu.emit.emit_kernel import emit
from tilec.codegen.cpu.target import CpuTarget
from tilec.codegen.kernels import lower_plan
from tilec.ir.expr import constant_value
from tilec.ir.plan import Group, Plan, Variant
from tilec.lower.checks.plan_errors import PlanError
from tilec.progress import unseen
from tilec.scheduler import schedule
from tilec.scheduler.building.subplan import subplan
from tilec.spec.recipe import ScheduleOptions

QUICK = ("llama-layer-decode", "nerf-mlp")


def kernel_text(group: Group, variant: Variant, plan: Plan, folder: Path) -> str:
    """The text of the TIR of a group with another variant."""
    changed = replace(group, variants=(variant,))
    one = subplan([changed], group.outputs, plan.tensors, plan.levels, plan.device)
    (program,) = lower_plan(one, folder, unseen).programs.values()
    kernel = emit(program, CpuTarget.of(tiny()))
    return "".join(str(function.script()) for function in (kernel.function, *kernel.parts.values()))


def mutated(group: Group) -> Iterator[tuple[str, Variant]]:
    """The variant of a group with every one of its tile sizes changed in turn."""
    variant = group.variants[0]
    domains = {node.name: node.expr.domain for node in group.nodes}
    for level, nodes in variant.tiles.items():
        for node, sizes in nodes.items():
            for iterator, size in sizes.items():
                extent = constant_value(domains[node][iterator])
                if extent == 1 or (size == 1 and level != variant.levels[1]):
                    continue  # no tile is larger than the one around it
                other = 1 if size > 1 else 2
                tiles = {**variant.tiles, level: {**nodes, node: {**sizes, iterator: other}}}
                yield f"{group.name}: {node} {iterator} at {level}, {size} -> {other}", replace(variant, tiles=tiles)


def check(model: str, folder: Path) -> None:
    plan = schedule(small(model), tiny(), ScheduleOptions())
    ignored, shown, refused = [], 0, 0
    for group in {group.variants[0].kernel: group for group in plan.groups}.values():
        plain = kernel_text(group, group.variants[0], plan, folder)
        for what, variant in mutated(group):
            try:
                text = kernel_text(group, variant, plan, folder)
            except PlanError:  # with a code of the closed list
                refused += 1
                continue
            if text == plain:
                ignored.append(what)
            shown += text != plain
    assert shown > max(3, refused)
    assert not ignored, "\n".join(ignored)


@pytest.mark.quick_cases("nerf-mlp")
@pytest.mark.feature("W31", "W33")
@pytest.mark.parametrize("model", QUICK)
def test_every_tile_of_a_plan_shows_in_its_kernel(model: str, tmp_path: Path) -> None:
    check(model, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("model", sorted(SMALL.keys() - set(QUICK)))
def test_every_tile_of_all_plans_shows_in_its_kernel(model: str, tmp_path: Path) -> None:
    check(model, tmp_path)
