"""The code of a kernel is decided when its group is planned: rules write it into the plan, edits are obeyed or refused;
kernels without code are told of, for the partition to cut (A15)."""

from dataclasses import replace
from functools import cache, partial
from math import prod

import pytest
from scheduler.graphs import make_graph
from scheduler.models import attention
from scheduler.running import device

from tilec.codegen.backend import backend_of
from tilec.codegen.gpu.decisions import Decisions
from tilec.codegen.gpu.kernel_context import KernelContext
from tilec.codegen.gpu.kernel_ir import tiles
from tilec.codegen.gpu.pipeline import lower_kernel
from tilec.codegen.gpu.print.kernel import print_kernel
from tilec.codegen.gpu.printed_kernel import printed_kernel
from tilec.codegen.gpu.target import GpuTarget
from tilec.errors import UnsupportedError
from tilec.ir.decisions import without_code
from tilec.ir.graph import Graph
from tilec.ir.known_ranges import KnownRanges
from tilec.ir.plan import PlanLevel
from tilec.lower.checks.plan_errors import PlanError
from tilec.lower.lowering import lower
from tilec.scheduler.schedule import schedule
from tilec.spec.recipe import CodegenOptions, ScheduleOptions

SMALL = make_graph(
    {"x": (24, 16)},
    [
        ("a[m, n] = sum(k, x[m, k] * w[k, n])", {"m": 24, "n": 20, "k": 16}),
        ("t[m] = max(n, a[m, n])", {"m": 24, "n": 20}),
        ("y[m, n] = exp(a[m, n] - t[m])", {"m": 24, "n": 20}),
    ],
    ["y"],
    {"w": (16, 20)},
)
PRODUCT = make_graph(
    {"x": (4096, 128)},
    [
        ("c[m, n] = sum(k, x[m, k] * w[k, n])", {"m": 4096, "n": 128, "k": 128}),
        ("y[m, n] = c[m, n] / (1.0 + exp(c[m, n]))", {"m": 4096, "n": 128}),
    ],
    ["y"],
    {"w": (128, 128)},
    ttypes=dict.fromkeys("xwcy", "f16"),
)


@cache
def planned():
    """A plan of one group for an a100, its decided variant, and the target."""
    spec = device("a100")
    plan = schedule(PRODUCT, spec, ScheduleOptions(bounds=False), decide=partial(backend_of(spec).decide, spec))
    return plan, plan.groups[0].variants[0], GpuTarget.of(spec, CodegenOptions())


def printed(**edit):
    """The kernel of the plan after an edit of its variant."""
    plan, variant, target = planned()
    group = replace(plan.groups[0], variants=(replace(variant, **edit),))
    return printed_kernel(lower(group, group.variants[0], plan), plan, group, target)


@pytest.mark.slow_cases("attention-a100", "attention-mi250", "small-a100")
@pytest.mark.parametrize("name", ["a100", "mi250"])
@pytest.mark.parametrize("graph", [attention(), SMALL], ids=["attention", "small"])
@pytest.mark.feature("A15", "W26")
def test_rules_write_what_they_decide_into_the_plan(graph: Graph, name: str) -> None:
    spec, asked = device(name), []
    backend = backend_of(spec)
    assert backend is not None
    assert backend.decide is not None
    decide = partial(backend.decide, spec)
    options = ScheduleOptions(bounds=False)
    plan = schedule(graph, spec, options, decide=lambda *kernel: asked.append(kernel) or decide(*kernel))
    groups = [replace(group, variants=tuple(map(without_code, group.variants))) for group in plan.groups]
    assert replace(plan, groups=tuple(groups)) == schedule(graph, spec, options)
    assert all(variant.threads and variant.resident for group in plan.groups for variant in group.variants)
    assert not any(variant.fast for group in plan.groups for variant in group.variants), "f32 is exact"
    with_one_more, groups, program = asked[0]
    assert decide(plan, plan.groups[:1], program)[0] == plan.groups[0].variants[0]
    program = replace(program, levels=(*program.levels, PlanLevel("lane", 256, 32, scope="lane")))
    with pytest.raises(UnsupportedError, match="GPU code is for memory of the device, of a block and of a unit"):
        decide(with_one_more, groups, program)


def test_a_kernel_that_a_plan_decides_is_that_of_the_rules():
    plan, variant, target = planned()
    rules, units = printed(), {unit.name: unit for unit in target.units}
    program, decisions = lower(plan.groups[0], variant, plan), Decisions.of(variant)
    kernel = lower_kernel(KernelContext(program, 32, KnownRanges(), units, target.registers, decisions))
    assert print_kernel(kernel, rules.symbol, KnownRanges()).text == rules.text


def test_a_plan_says_what_its_kernel_does():
    _, variant, _ = planned()
    assert (variant.threads, variant.resident) == ({"smem": 640}, {"smem": 1})
    assert variant.asynchronous == {"smem": ("w", "x")}
    assert variant.unroll == {"c": {"k": 32}, "y": {"m": 2, "n": 4}}
    assert variant.fast == ("/", "exp")


def test_edits_of_a_plan_are_obeyed():
    rules = printed().text
    assert "T_BOUNDS(640, 1)" in rules
    assert "t_fast_exp" in rules
    exact = printed(fast=("/",)).text
    assert "t_exp" in exact
    assert "t_fast_exp" not in exact
    assert "t_fast_div" in exact
    assert "T_BOUNDS(768, 2)" in printed(threads={"smem": 768}, resident={"smem": 2}).text
    assert 0 < printed(asynchronous={"smem": ("w",)}).text.count("t_copy(") < rules.count("t_copy(")
    assert "#pragma unroll\n    for (int k_s" not in printed(unroll={"c": {"k": 16}}).text
    apart = printed(unroll={"c": {"k": 32}, "y": {"n": 4}}).kernel
    assert [prod(tile.together.values()) for tile in tiles(apart.body) if tile.expr.tensor == "y"] == [4]


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        ({"threads": {"smem": 2048}}, "cannot have 2048 threads, a block has 1024 at most"),
        ({"threads": {"smem": 650}}, "cannot have 650 threads, 32 of them execute instructions together"),
        ({"threads": {"smem": 32}}, "cannot have 32 threads, 256 of them act together"),
        ({"resident": {"smem": 40}}, "40 blocks cannot share an instance of smem, a core has memory and units for 3"),
        ({"asynchronous": {"smem": ("y",)}}, "y: loads at smem cannot arrive later, no thread loads it there"),
        ({"fast": ("tanh",)}, "no approximation of tanh here, only /, erf, exp, sigmoid have an approximation"),
        ({"fast": ("erf",)}, "no approximation of erf here, nothing computes it"),
        ({"unroll": {"c": {"k": 48}}}, "c: 48 points of k cannot be one body, 16 or 32 can"),
        ({"unroll": {"y": {"m": 3}}}, "y: 3 points of m cannot be one body, 1 or 2 can"),
        ({"vectors": {"c": "n"}}, "the vector at reg has no effect, the device's code generator does not decide that"),
        ({"threads": {}}, "the plan does not say the threads of a block at smem"),
    ],
)
def test_what_a_kernel_cannot_have_is_refused(edit, message):
    with pytest.raises(PlanError) as error:
        printed(**edit)
    assert message in str(error.value)
