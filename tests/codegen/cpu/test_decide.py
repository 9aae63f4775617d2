"""Decisions about code: written down as the rules choose, obeyed where they are given, refused where they cannot be."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scheduler.running import device

from tests.codegen.cpu.running import AVX512, Batch, close
from tests.codegen.cpu.test_obeyed import MODELS
from tests.lower.cases import Case
from tilec.codegen.cpu.check_decisions import check_decisions
from tilec.codegen.cpu.compile import object_files
from tilec.codegen.cpu.compile.object_files import lowered_source
from tilec.codegen.cpu.decide import decided_kernel, decided_variant, lowered_kernel
from tilec.codegen.cpu.decisions import Decisions
from tilec.codegen.cpu.emit.emit_kernel import emit
from tilec.codegen.cpu.kernel_source import kernel_source, processor_of
from tilec.codegen.cpu.pipeline import KernelContext
from tilec.ir.plan import Plan, Refusal, Variant
from tilec.ir.program import Program
from tilec.lower.checks.check_plan import problems
from tilec.lower.lowering import lower
from tilec.spec.recipe import CodegenOptions

ZEN5 = device("zen5-avx512")


def decided(case: Case) -> tuple[Plan, Variant, Program]:
    """The plan of a case, its variant with all decisions, its tile program."""
    plan = case.plan()
    group = plan.groups[0]
    program = lower(group, group.variants[0], plan)
    return plan, decided_variant(ZEN5, plan, [group], program), program


def refused(plan: Plan, variant: Variant, program: Program) -> tuple[Refusal, ...]:
    context = KernelContext(program, AVX512, decisions=Decisions.of(variant, program))
    wrong = problems(replace(plan.groups[0], variants=(variant,)), variant, plan)
    return wrong or check_decisions(lowered_kernel(context), plan.groups[0], variant, plan, context)


@pytest.mark.parametrize("name", MODELS)
def test_a_kernel_that_is_decided_is_the_one_that_the_rules_make(name: str) -> None:
    plan, variant, program = decided(MODELS[name])
    assert variant.vectors.keys() == {node.name for node in plan.groups[0].nodes}
    rules = lowered_kernel(KernelContext(program, AVX512))
    assert lowered_kernel(KernelContext(program, AVX512, decisions=Decisions.of(variant, program))) == rules
    assert refused(plan, variant, program) == ()
    assert decided_variant(ZEN5, plan, [replace(plan.groups[0], variants=(variant,))], program) == variant


def test_decisions_of_a_product_say_its_register_tile() -> None:
    _, variant, _ = decided(MODELS["matmul"])
    assert variant.vectors == {"C": "n", "Y": "n"}
    assert variant.unroll == {"C": {"m": 14, "n": 16, "k": 6}, "Y": {"m": 14, "n": 16}}


def product(m: int, n: int, k: int, **tiles: object) -> Case:
    return Case(
        ["C[m, n] = sum(k, A[m, k] * B[k, n])"],
        {"m": m, "n": n, "k": k},
        {"A": (m, k), "B": (k, n)},
        **tiles,  # type: ignore[arg-type]
    )


PRODUCT = product(24, 40, 96)
WORDS = replace(PRODUCT, texts=["C[m, n] = sum(k, dot_u8_i8(A[m, k], B[k, n]))"])
WORDS = replace(WORDS, ttypes={"A": "u32", "B": "u32", "C": "i32"})
COPIED = Case(["Y[i, j] = X[i, j] * 2.0"], {"i": 6, "j": 64}, {"X": (6, 64)})


@pytest.mark.parametrize(
    ("case", "edits", "code"),
    [
        (PRODUCT, {"vectors": {"C": "m"}}, "vector"),
        (PRODUCT, {"vectors": {"C": "q"}}, "unknown-name"),
        (PRODUCT, {"unroll": {"C": {"k": 0}}}, "size"),
        (PRODUCT, {"unroll": {"C": {"q": 2}}}, "unknown-name"),
        (PRODUCT, {"unroll": {"C": {"m": 25}}}, "unroll"),
        (PRODUCT, {"unroll": {"C": {"m": 24, "n": 40, "k": 96}}}, "unroll"),
        (PRODUCT, {"accumulators": {"C": 40}}, "accumulators"),
        (COPIED, {"accumulators": {"Y": 2}}, "accumulators"),
        (PRODUCT, {"vectors": {"C": "n"}, "unroll": {"D": {"m": 2}}}, "unknown-name"),
        (PRODUCT, {"prefetch": {"B": "step"}}, "prefetch"),
        (PRODUCT, {"prefetch": {"C": "task"}}, "prefetch"),
        (PRODUCT, {"streamed": ("A",)}, "streamed"),
        (PRODUCT, {"units": {"C": "vpdpbusd"}}, "unit"),
        (WORDS, {"units": {"C": "vpdpbusd"}}, "unit"),
    ],
)
def test_what_a_kernel_cannot_have_is_refused(case: Case, edits: dict[str, object], code: str) -> None:
    plan, variant, program = decided(case)
    found = refused(plan, replace(variant, **edits), program)  # type: ignore[arg-type]
    assert {refusal.code for refusal in found} == {code}


def test_a_fused_iterator_is_named_by_the_innermost() -> None:
    plan, variant, program = decided(COPIED)
    assert variant.vectors == {"Y": "j"}
    (refusal,) = refused(plan, replace(variant, vectors={"Y": "i"}, unroll={}), program)
    assert refusal.numbers["why"] == "it runs as one with j"


def edit(variant: Variant, plan: Plan, draw: random.Random) -> Variant:
    """Another vector iterator, unrolling or number of accumulators of a node."""
    node = draw.choice(plan.groups[0].nodes).expr
    kind = draw.choice(["vectors", "unroll", "accumulators"])
    if kind == "vectors":
        return replace(variant, vectors={**variant.vectors, node.tensor: draw.choice(["", *node.iterators])})
    if kind == "accumulators":
        return replace(variant, accumulators={**variant.accumulators, node.tensor: draw.randint(1, 6)})
    widths = {draw.choice(node.iterators): draw.randint(1, 20) for _ in range(2)}
    return replace(variant, unroll={**variant.unroll, node.tensor: {**variant.unroll.get(node.tensor, {}), **widths}})


def test_edited_decisions_change_the_kernel_and_not_its_results(tmp_path: Path) -> None:
    draw, batch, codes = random.Random(3), Batch(), Counter[str]()
    known = {name: decided(case) for name, case in MODELS.items()}
    added: list[str] = []
    changed = 0
    while len(added) < 6:
        name = draw.choice(sorted(MODELS))
        plan, variant, program = known[name]
        edited = edit(edit(variant, plan, draw), plan, draw)
        found = refused(plan, edited, program)
        codes.update(refusal.code for refusal in found)
        if found:
            continue
        decisions = Decisions.of(edited, program)
        batch.add(program, MODELS[name].arrays(len(added)), decisions=decisions)
        added.append(name)
        changed += lowered_kernel(KernelContext(program, AVX512)) != lowered_kernel(
            KernelContext(program, AVX512, decisions=decisions)
        )
    assert codes.keys() >= {"vector", "unroll", "accumulators"}
    assert changed >= 3
    for number, (name, results) in enumerate(zip(added, batch.run(tmp_path), strict=True)):
        expected = MODELS[name].reference(MODELS[name].arrays(number))
        for tensor, value in results.items():
            assert close(value, expected[tensor].astype(np.float32), 1e-4), name


def test_a_prefetch_that_is_dropped_is_not_there() -> None:
    case = product(64, 64, 512, tiles={"l2": {"C": {"m": 32, "n": 16}}, "reg": {"C": {"m": 4, "n": 16}}})
    _, variant, program = decided(case)
    assert "B" in variant.prefetch

    def fetches(variant: Variant) -> int:
        kernel = emit(program, AVX512, decisions=Decisions.of(variant, program))
        return sum(str(f.script()).count("llvm.prefetch") for f in (kernel.function, *kernel.parts.values()))

    assert fetches(variant) > 0
    assert fetches(replace(variant, prefetch={})) == 0


def test_a_kernel_that_was_lowered_to_decide_is_not_lowered_again(monkeypatch: pytest.MonkeyPatch) -> None:
    case = MODELS["matmul"]
    plan = case.plan()
    program = lower(plan.groups[0], plan.groups[0].variants[0], plan)
    variant, kernel = decided_kernel(ZEN5, plan, plan.groups, program)
    groups = [replace(plan.groups[0], variants=(variant,))]
    source = kernel_source(plan, groups, program, ZEN5, processor_of(plan, ZEN5, CodegenOptions()), None)
    again = lowered_source(source)
    monkeypatch.setattr(object_files, "lowered_kernel", None)
    assert lowered_source(replace(source, lowered=kernel)) == again
