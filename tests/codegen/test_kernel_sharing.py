"""Groups share a kernel only where they compute the same, on the same shapes, by the same plan, up to names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from scheduler.graphs import make_graph
from scheduler.running import tiny

from tilec.codegen.kernel_sharing import renaming
from tilec.codegen.kernels import lower_plan
from tilec.errors import ArtifactError
from tilec.ir.expr import Const
from tilec.ir.graph import Node, Tensor
from tilec.ir.plan import Cost, Group, Shared, Variant
from tilec.ir.text import parse_expr, parse_tensor
from tilec.progress import unseen
from tilec.scheduler import schedule
from tilec.spec.recipe import ScheduleOptions

E = {"m": 6, "n": 4, "k": 5}


def group(
    a: str,
    w: str,
    c: str,
    y: str,
    decided: dict[str, Any] | None = None,
    iterators: Mapping[str, str] = {"m": "m", "n": "n", "k": "k"},
) -> Group:
    """`y = max(a @ w, 0)`, connected in registers; `decided` replaces decisions, `iterators` renames m, n and k."""
    m, n, k = iterators["m"], iterators["n"], iterators["k"]
    extents = {m: E["m"], n: E["n"], k: E["k"]}
    product = parse_tensor(f"{c}[{m}, {n}] = sum({k}, {a}[{m}, {k}] * {w}[{k}, {n}])", extents)
    relu = parse_tensor(f"{y}[{m}, {n}] = maximum({c}[{m}, {n}], 0.0)", extents)
    given: dict[str, Any] = {
        "tiles": {"l2": {y: {m: 3}}},
        "steps": {"l2": {c: {k: 5}}},
        "order": {"l2": {y: (m, n)}},
        "tails": {"l2": {y: "clip"}},
        "loads": {w: ("l2",)},
        "units": {c: "fma"},
        "copies": {"l2": {a: 2}},
        "layouts": {"l2": {w: (1, 0)}},
        "shared": {c: Shared(c, {k: k}, parse_expr(f"{c}[{m}, {n}]"))},
        "held": {"l2": {c: "f32"}},
    }
    variant = Variant(guard=Const(True), levels=("dram", "l2"), kernel="k", **{**given, **(decided or {})})
    return Group(f"of {y}", (Node(product), Node(relu)), (y,), {f"{c}->{y}": "l2"}, (variant,), Cost({}, {}, {}))


def tensors(*names: str) -> dict[str, Tensor]:
    a, w, c, y = names
    shapes = {a: ("m", "k"), w: ("k", "n"), c: ("m", "n"), y: ("m", "n")}
    return {name: Tensor(tuple(Const(E[i]) for i in shape), "f32") for name, shape in shapes.items()}


ONE, OTHER = ("a", "w", "c", "y"), ("b", "v", "d", "z")
TENSORS = tensors(*ONE) | tensors(*OTHER)


def test_the_other_tensors_are_those_in_the_same_places() -> None:
    assert renaming(group(*ONE), group(*OTHER), TENSORS) == dict(zip(ONE, OTHER, strict=True))


@pytest.mark.feature("W41")
def test_names_of_iterators_are_no_part_of_a_kernel() -> None:
    """Two equal products, whose iterators and unit axes are named in another order each, and all that is decided."""
    inverse = {"m": "n", "n": "k", "k": "m"}
    first, second = group(*ONE), group(*OTHER, iterators=inverse)
    assert first.nodes[0].expr.iterators != second.nodes[0].expr.iterators
    assert renaming(first, second, TENSORS) == dict(zip(ONE, OTHER, strict=True))
    (variant,) = second.variants
    for decision, changed in {"order": {"l2": {"z": ("k", "n")}}, "tiles": {"l2": {"z": {"k": 3}}}}.items():
        assert getattr(variant, decision) != changed
        other = replace(second, variants=(replace(variant, **{decision: changed}),))
        with pytest.raises(ArtifactError, match="differ in plan"):
            renaming(first, other, TENSORS)


@pytest.mark.feature("W41")
def test_what_gets_one_name_runs_one_kernel(tmp_path: Path) -> None:
    """Equal sums over tensors with unit axes: the name that the scheduler gives and the check agree."""
    nodes = [
        ("p[j, k, i] = sum(r, x[j, i, r] * w[k, r])", {"j": 1, "k": 1, "i": 8, "r": 8}),
        ("q[i, j, r] = p[0, 0, j] * u[r]", {"i": 1, "j": 8, "r": 8}),
        ("y[i, k, j] = sum(r, q[i, j, r] * v[k, r])", {"i": 1, "k": 1, "j": 8, "r": 8}),
    ]
    graph = make_graph({"x": (1, 8, 8)}, nodes, ["y"], {"w": (1, 8), "u": (8,), "v": (1, 8)})
    plan = schedule(graph, tiny(), ScheduleOptions(fusion="none"))
    kernels = lower_plan(plan, tmp_path, unseen)
    assert [step.group for step in kernels.steps] == ["p", "q", "y"]
    assert [step.tensors for step in kernels.steps if step.kernel == kernels.steps[0].kernel] == [
        ("x", "w", "p"),
        ("q", "v", "y"),
    ]


DECIDED: dict[str, Any] = {
    "tiles": {"l2": {"z": {"m": 2}}},
    "steps": {"l2": {"d": {"k": 1}}},
    "order": {"l2": {"z": ("n", "m")}},
    "tails": {"l2": {"z": "shift"}},
    "loads": {"b": ("l2",)},
    "units": {"d": "mma"},
    "copies": {"l2": {"b": 3}},
    "layouts": {"l2": {"v": (0, 1)}},
    "shared": {"d": Shared("z", {"k": "k"}, parse_expr("d[m, n]"))},
    "held": {},
}


@pytest.mark.feature("W41")
@pytest.mark.parametrize("decision", DECIDED)
def test_another_decision_wants_another_kernel(decision: str) -> None:
    with pytest.raises(ArtifactError, match="groups of y and of z name one kernel but differ in plan"):
        renaming(group(*ONE), group(*OTHER, {decision: DECIDED[decision]}), TENSORS)


def test_another_connection_wants_another_kernel() -> None:
    with pytest.raises(ArtifactError, match="differ in plan"):
        renaming(group(*ONE), replace(group(*OTHER), connect={"d->z": "dram"}), TENSORS)


@pytest.mark.parametrize(
    "other",
    [
        group("b", "b", "d", "z"),
        group("b", "v", "d", "z").nodes[:1],
        replace(group(*OTHER), outputs=("d",)),
        replace(group(*OTHER), nodes=(group(*OTHER).nodes[0], Node(parse_tensor("z[m, n] = abs(d[m, n])", E)))),
    ],
    ids=["operands", "nodes", "outputs", "expressions"],
)
def test_another_form_wants_another_kernel(other: Group | tuple[Node, ...]) -> None:
    if isinstance(other, tuple):
        other = replace(group(*OTHER), nodes=other)
    with pytest.raises(ArtifactError, match="differ in form"):
        renaming(group(*ONE), other, TENSORS)


def test_other_shapes_and_types_want_another_kernel() -> None:
    for changed in (Tensor((Const(6), Const(7)), "f32"), Tensor((Const(6), Const(5)), "f16")):
        with pytest.raises(ArtifactError, match="differ in form"):
            renaming(group(*ONE), group(*OTHER), {**TENSORS, "b": changed})
