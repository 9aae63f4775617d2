"""A decision that the package does not have, added by one field of a variant, reaches all that handles decisions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from tests.lower.cases import MATMUL
from tilec.analysis.diff import diff_plans
from tilec.artifact import decode, encode
from tilec.cli.selected import decision_lines
from tilec.codegen.kernel_sharing import renaming
from tilec.errors import ArtifactError
from tilec.ir.decision_forms import COUNT, LEVEL, NODE, SPATIAL, TENSOR, Table, decides
from tilec.ir.decisions import Renaming, renamed
from tilec.ir.plan import Group, Plan, Variant
from tilec.lower.checks.check_plan import problems
from tilec.lower.checks.unused_decisions import unused_decisions
from tilec.lower.lowering import lower
from tilec.scheduler.building.kernel_names import kernel_name
from tilec.scheduler.tuning.decision import decisions

AHEAD = decides("ahead", "distance of prefetches", Table(LEVEL, Table(TENSOR, COUNT)), "buffer")
LANES = decides("lanes", "vector iterator", Table(NODE, SPATIAL))


@dataclass(frozen=True, slots=True)
class Extended(Variant):
    """A variant that also decides how far ahead windows are fetched, and the iterator that vectors run along."""

    ahead: Mapping[str, Mapping[str, int]] = field(default_factory=dict, metadata=AHEAD)
    lanes: Mapping[str, str] = field(default_factory=dict, metadata=LANES)


BASE = MATMUL.plan()
DECIDED: dict[str, Any] = {"ahead": {"l2": {"A": 3}}, "lanes": {"Y": "n"}}


def extended(plan: Plan = BASE, **changes: Any) -> Plan:
    """The plan with one variant of the class with more fields."""
    (group,) = plan.groups
    (old,) = group.variants
    values = {name: getattr(old, name) for name in Variant.__dataclass_fields__}
    return replace(plan, groups=(replace(group, variants=(Extended(**{**values, **changes}),)),))


def only(plan: Plan) -> tuple[Group, Variant]:
    return plan.groups[0], plan.groups[0].variants[0]


def test_written_and_read() -> None:
    _, variant = only(extended(**DECIDED))
    data = encode(variant)
    assert {name: data[name] for name in DECIDED} == DECIDED
    assert decode(Extended, data) == variant
    assert encode(only(extended())[1]) == encode(only(BASE)[1]), "nothing is written where nothing is decided"


def test_renamed_with_the_group() -> None:
    _, variant = only(extended(**DECIDED))
    other = renamed(variant, Renaming({"A": "A2", "Y": "Y2"}, {"Y": {"n": "j"}}))
    assert isinstance(other, Extended)
    assert (other.ahead, other.lanes) == ({"l2": {"A2": 3}}, {"Y2": "j"})
    (decision,) = decisions(extended(**DECIDED))
    assert encode(decision.variants[0])["lanes"] == {"t4": "i1"}


def test_groups_that_decide_otherwise_share_no_kernel() -> None:
    group, _ = only(extended(**DECIDED))
    assert renaming(group, group, BASE.tensors)["A"] == "A"
    with pytest.raises(ArtifactError, match="differ in plan"):
        renaming(group, only(extended())[0], BASE.tensors)


def test_told_by_diff_and_inspect() -> None:
    (change,) = diff_plans(extended(), extended(**DECIDED)).groups
    assert change.kinds == ("retiled",)
    assert [(c.kind, c.level, c.subject, c.before, c.after) for c in change.changes] == [
        ("ahead", "l2", "A", None, 3),
        ("lanes", "", "Y", None, "n"),
    ]
    lines = dict(decision_lines(Extended, encode(only(extended(**DECIDED))[1])))
    assert (lines["ahead l2 A"], lines["lanes Y"]) == ("3", "n")


def test_part_of_the_kernels_name() -> None:
    def name(plan: Plan) -> str:
        group, variant = only(plan)
        return kernel_name(group.nodes, group.outputs, group.connect, variant, plan.tensors, plan.levels)

    assert name(extended()) == name(BASE), "a field that decides nothing leaves the names that there are"
    assert len({name(extended(**{key: value})) for key, value in DECIDED.items()} | {name(BASE)}) == 3


@pytest.mark.parametrize(
    ("changes", "code", "said"),
    [
        ({"ahead": {"l3": {"A": 3}}}, "unknown-level", {"level": "l3"}),
        ({"ahead": {"l2": {"AA": 3}}}, "unknown-name", {"what": "tensor", "name": "AA"}),
        ({"ahead": {"l2": {"A": 0}}}, "size", {"what": "distance of prefetches", "size": 0}),
        ({"lanes": {"X": "n"}}, "unknown-name", {"what": "node", "name": "X"}),
        ({"lanes": {"C": "k"}}, "unknown-name", {"what": "iterator for a vector iterator", "name": "k"}),
    ],
)
def test_names_and_numbers_are_checked(changes: dict[str, Any], code: str, said: dict[str, Any]) -> None:
    plan = extended(**changes)
    (refusal,) = problems(*only(plan), plan)
    assert refusal.code == code
    assert said.items() <= refusal.numbers.items()


def test_without_effect() -> None:
    plan = extended(ahead={"l2": {"Y": 2, "A": 2}, "dram": {"C": 2}})
    program = lower(*only(plan), plan)
    (refusal,) = unused_decisions(*only(plan), plan, program)
    assert (refusal.edge, refusal.numbers["what"], refusal.numbers["level"]) == ("C", "distance of prefetches", "dram")
