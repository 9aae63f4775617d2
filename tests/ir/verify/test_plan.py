"""The plan's verifier: an edited plan that would read out of memory is refused, a sound one passes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from tilec.codegen.kernel_sharing import renaming
from tilec.errors import ArtifactError
from tilec.ir.expr import Access, Const, Var
from tilec.ir.graph import Inline, Node, Port, Tensor, WeightRef
from tilec.ir.plan import Cost, Group, Plan, Shared, Variant
from tilec.ir.text import parse_tensor
from tilec.ir.verify.plan import check_plan


def group(name: str, *texts: tuple[str, dict[str, int]], outputs: tuple[str, ...], kernel: str = "k") -> Group:
    nodes = tuple(Node(parse_tensor(text, extents)) for text, extents in texts)
    return Group(name, nodes, outputs, {}, (Variant(Const(True), ("dram", "reg"), {}, {}, kernel),), Cost({}, {}, {}))


def shaped(*shape: int, ttype: str = "f32") -> Tensor:
    return Tensor(tuple(Const(n) for n in shape), ttype)


SOUND = Plan(
    name="m",
    device="d",
    levels=(),
    symbols=(),
    inputs=(Port("x", "x"),),
    outputs=(Port("y", "y"),),
    tensors={"x": shaped(4), "w": shaped(3), "p": shaped(3), "h": shaped(6), "y": shaped(6)},
    constants={"w": Inline((1.0, 2.0, 3.0))},
    prepared=(Node(parse_tensor("p[i] = w[i] * 2.0", {"i": 3})),),
    groups=(
        group("a", ("h[i] = where(i >= 1 and i < 5, x[i - 1], 0.0)", {"i": 6}), outputs=("h",), kernel="k1"),
        group("b", ("y[i] = h[i] + p[i % 3]", {"i": 6}), outputs=("y",), kernel="k2"),
    ),
    refusals=(),
)


def test_a_sound_plan_passes() -> None:
    assert check_plan(SOUND) == ()


def body(text: str, extents: dict[str, int], which: int = 0) -> Callable[[Plan], Plan]:
    """The plan with another expression in a group."""

    def edit(plan: Plan) -> Plan:
        old = plan.groups[which]
        new = replace(old, nodes=(Node(parse_tensor(text, extents)),))
        return replace(plan, groups=(*plan.groups[:which], new, *plan.groups[which + 1 :]))

    return edit


def tensor(name: str, made: Tensor) -> Callable[[Plan], Plan]:
    return lambda plan: replace(plan, tensors={**plan.tensors, name: made})


def constant(made: Inline | WeightRef) -> Callable[[Plan], Plan]:
    return lambda plan: replace(plan, constants={"w": made})


def kernel(name: str) -> Callable[[Plan], Plan]:
    def edit(plan: Plan) -> Plan:
        first = plan.groups[0]
        variant = replace(first.variants[0], kernel=name)
        return replace(plan, groups=(replace(first, variants=(variant,)), plan.groups[1]))

    return edit


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (body("h[i] = where(i >= 1 and i < 6, x[i - 1], 0.0)", {"i": 6}), "h reads outside of x"),
        (body("h[i] = where(i >= 0 and i < 5, x[i - 1], 0.0)", {"i": 6}), "h reads outside of x"),
        (body("h[i] = where(i >= 1 or i < 5, x[i - 1], 0.0)", {"i": 6}), "h reads outside of x"),
        (body("h[i] = x[i - 1]", {"i": 6}), "index 0 of x runs from -1 to 4"),
        (body("h[i] = x[i * 1000000000000]", {"i": 6}), "its extent is 4"),
        (body("h[i] = x[0, i]", {"i": 6}), "rank 1 with 2 indices"),
        (body("h[i] = x[1.5]", {"i": 6}), "no integer"),
        (body("h[i] = x[i]", {"i": 7}), "its extents are not its tensor's shape"),
        (body("h[i] = q[i]", {"i": 6}), "reads q, which is not computed before it"),
        (body("h[i] = y[i]", {"i": 6}), "reads y, which is not computed before it"),
        (body("y[i] = h[i] + p[i % 4]", {"i": 6}, 1), "its extent is 3"),
        (tensor("x", shaped(3)), "h reads outside of x"),
        (tensor("x", shaped(-1)), "the extent -1"),
        (tensor("x", shaped(1 << 41)), "the extent 2199023255552"),
        (tensor("x", shaped(1 << 30, 1 << 30)), "more than"),
        (tensor("x", Tensor((Const(1.5),), "f32")), "not made of integers"),
        (tensor("x", shaped(4, ttype="f33")), "unknown tType f33"),
        (constant(Inline((1.0, 2.0))), "constant w has 2 values, not 3"),
        (constant(WeightRef("w.bin", 0, 8)), "takes 8 bytes"),
        (constant(WeightRef("w.bin", 0, 12)), "none of the files"),
        (lambda plan: replace(plan, groups=plan.groups[::-1]), "reads h, which is not computed before it"),
        (
            lambda plan: replace(plan, groups=(replace(plan.groups[0], outputs=()), plan.groups[1])),
            "no group before it",
        ),
        (lambda plan: replace(plan, groups=plan.groups[:1]), "output y is never computed"),
        (lambda plan: replace(plan, outputs=(Port("y", "y"), Port("z", "y"))), "two outputs are y"),
        (lambda plan: replace(plan, inputs=(Port("x", "x"), Port("x", "x"))), "two inputs are called x"),
        (kernel("../../evil"), "a kernel called '../../evil'"),
        (kernel(""), "a kernel called ''"),
        (kernel("k" * 999), "a kernel called"),
    ],
)
def test_edits_that_reach_too_far(edit: Callable[[Plan], Plan], said: str) -> None:
    found = check_plan(edit(SOUND))
    assert any(said in problem for problem in found), found


def test_groups_that_share_a_kernel_have_tensors_of_the_same_shapes() -> None:
    """Code that was compiled for one would run past the end of the other."""
    first = group("a", ("h[i] = x[i]", {"i": 6}), outputs=("h",))
    other = group("b", ("g[i] = z[i]", {"i": 6}), outputs=("g",))
    same = dict.fromkeys("hxgz", shaped(6))
    assert renaming(first, other, same) == {"h": "g", "x": "z"}
    for name in "gz":
        with pytest.raises(ArtifactError, match="name one kernel but differ"):
            renaming(first, other, {**same, name: shaped(3)})
        with pytest.raises(ArtifactError, match="name one kernel but differ"):
            renaming(first, other, {**same, name: shaped(6, ttype="f64")})


def test_groups_that_share_a_kernel_compute_the_same_and_have_the_same_plan() -> None:
    first = group("a", ("h[i] = x[i]", {"i": 6}), outputs=("h",))
    twice = group("b", ("g[i] = 2.0 * z[i]", {"i": 6}), outputs=("g",))
    other = group("c", ("g[i] = z[i]", {"i": 6}), outputs=("g",))
    tiled = replace(other, variants=(replace(other.variants[0], tiles={"l2": {"g": {"i": 2}}}),))
    same = dict.fromkeys("hxgz", shaped(6))
    assert renaming(first, other, same) == {"h": "g", "x": "z"}
    with pytest.raises(ArtifactError, match="differ in form"):
        renaming(first, twice, same)
    with pytest.raises(ArtifactError, match="differ in plan"):
        renaming(first, tiled, same)
    pair = {
        name: replace(each, variants=(replace(each.variants[0], shared={name: Shared(name, {}, element(name))}),))
        for name, each in (("h", first), ("g", other))
    }
    assert renaming(pair["h"], pair["g"], same) == {"h": "g", "x": "z"}
    with pytest.raises(ArtifactError, match="differ in plan"):
        renaming(pair["h"], other, same)


def element(name: str) -> Access:
    return Access(name, (Var("i"),))
