"""The passes over a kernel of a GPU: each decision is made once, shown as text, and held by the rules of the IR."""

from dataclasses import replace

import pytest

from tests.codegen.gpu.mutations import mutants
from tests.codegen.gpu.test_pipelined_loops import product
from tilec.codegen.gpu.kernel_context import KernelContext
from tilec.codegen.gpu.kernel_ir import Copy, Launch, steps
from tilec.codegen.gpu.kernel_text import kernel_text
from tilec.codegen.gpu.pipeline import KERNEL_PASSES, lower_kernel
from tilec.codegen.gpu.rewrite import rewritten
from tilec.codegen.gpu.verify_kernel import check_kernel
from tilec.ir.expr import Const
from tilec.ir.known_ranges import KnownRanges


def lowered(observe=None):
    return lower_kernel(KernelContext(product(8, 8, 64, 8, 3), 32, KnownRanges()), observe)


def test_every_pass_is_shown_and_decisions_stand_on_steps():
    shown = {}
    kernel = lowered(lambda name, kernel: shown.update({name: kernel_text(kernel)}))
    assert [*shown] == ["lower_program", *(step.name for step in KERNEL_PASSES)]
    before, behind = shown["lower_program"], shown["publish_stores"]
    assert "commit" not in before
    assert "grid" not in before
    assert f"grid     1 blocks of 4 units of 32 lanes, 1 resident, {3 * 2 * 256} bytes of shared memory" in behind
    assert [line.strip() for line in behind.splitlines() if line.strip() in ("commit", "barrier")] == [
        "commit", "barrier", "commit"
    ]  # fmt: skip
    assert "units 0:2 of all take u in 2:" in behind
    assert "where #unit < 2" in behind
    assert kernel.launch == Launch(Const(1), 128, 32, 1, kernel.launched.registers, Const(3 * 2 * 256))


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda k: replace(k, launch=replace(k.launch, threads=112)), "112 threads are no block of units of 32"),
        (lambda k: replace(k, launch=replace(k.launch, shared_bytes=Const(1 << 20))), "1048576 bytes of shared memory"),
        (lambda k: replace(k, launch=replace(k.launch, shared_bytes=Const(1024))), "outside of the memory of a block"),
        (lambda k: replace(k, held=dict.fromkeys(k.held, ())), "y_r is held otherwise"),
        (lambda k: replace(k, nest=()), "m1 is not bound"),
    ],
)
def test_kernels_that_break_a_rule_are_told_apart(change, problem):
    kernel = lowered()
    assert check_kernel(kernel, KnownRanges()) == ()
    assert any(problem in each for each in check_kernel(change(kernel), KnownRanges()))


@pytest.mark.parametrize("kind", ["another window", "another box", "wider vectors", "points beside"])
def test_loops_over_points_are_those_of_their_windows(kind):
    wrong = [mutant for mutant in mutants(lowered()) if mutant.kind == kind]
    assert wrong
    assert [mutant.step for mutant in wrong if not check_kernel(mutant.kernel, KnownRanges())] == []


def test_guards_are_those_of_the_window():
    kernel = lower_kernel(KernelContext(product(7, 5, 30, 8, 3), 32, KnownRanges()))
    (guarded, *_) = [step for step in steps(kernel.body) if isinstance(step, Copy) and (step.inside or step.present)]
    bare = replace(guarded, inside=(), present=())
    wrong = rewritten(kernel, lambda step, _: (bare if step is guarded else step,), KnownRanges())
    assert any("it is guarded otherwise than its window ends" in each for each in check_kernel(wrong, KnownRanges()))
