"""Plans edited by hand are obeyed: the TIR has all loops of the plan and the results are right, or a code refuses."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.codegen.cpu.implied import trip_counts
from tests.codegen.cpu.loops import program_iterations, tir_iterations
from tests.codegen.cpu.patterns import attention, depthwise_pointwise, layer_norm_matmul, relayed_gelu
from tests.codegen.cpu.running import AVX512, Batch, close
from tests.lower.cases import CASES, MATMUL, MLP, Case
from tilec.artifact.document import Artifact, read_artifact
from tilec.codegen.cpu.emit.emit_kernel import Kernel, emit
from tilec.codegen.kernels import Kernels, lower_plan
from tilec.ir.codec import plan_from_json, plan_to_json
from tilec.ir.graph import Port
from tilec.ir.plan import Plan
from tilec.ir.program import Program
from tilec.ir.program_text import program_text
from tilec.ir.verify.plan import check_plan
from tilec.lower.checks.plan_errors import REASONS, PlanError
from tilec.progress import unseen

MODELS = {
    "matmul": replace(MATMUL, extents={"m": 25, "n": 40, "k": 20}, inputs={**MATMUL.inputs, "A": (25, 20)}),
    "softmax": CASES["softmax"],
    "pooled": CASES["convolution, ReLU and pooling with halo"],
    "residual": CASES["residual with halo"],
    "hidden layer": replace(MLP, tiles={"l2": {"Y": {"m": 8}}, "reg": {"G": {"m": 4, "h": 8}, "Y": {"m": 4, "n": 4}}}),
    "gelu": relayed_gelu(),
    "attention": attention(layout=True),
    "norm and matmul": layer_norm_matmul(),
    "depthwise, pointwise": depthwise_pointwise(),
}
Document = dict[str, Any]


def written(case: Case, path: Path) -> Document:
    """The plan of a case as `2-plan.json`, and what stands there."""
    plan = case.plan()
    made = set(plan.groups[0].outputs)
    plan = replace(
        plan,
        inputs=tuple(Port(t, t) for t in case.inputs),
        outputs=tuple(Port(t, t) for t in plan.groups[0].outputs if t in made),
    )
    Artifact("plan", {}, plan_to_json(plan)).write(path)
    return json.loads(path.read_text())  # type: ignore[no-any-return]


def read_back(document: Document, path: Path) -> Plan:
    path.write_text(json.dumps(document))
    artifact = read_artifact(path, "plan")
    plan = plan_from_json(artifact.body)
    assert check_plan(plan) == ()
    return plan


def generated(plan: Plan, folder: Path) -> Kernels:
    return lower_plan(plan, folder, unseen)


# -- edits ------------------------------------------------------------------------------------------------


class Editor:
    """Random edits of the one group in a plan's document."""

    def __init__(self, document: Document, case: Case, draw: random.Random) -> None:
        self.group = document["groups"][0]
        self.variant = self.group["variants"][0]
        self.nodes = {node.tensor: node for node in case.nodes()}
        self.levels = self.variant["levels"][1:]
        self.draw = draw

    def change(self) -> None:
        kinds = [self.tile, self.tile, self.step, self.connect, self.order, self.tail]
        for kind in self.draw.sample(kinds, self.draw.randint(1, 3)):
            kind()

    def _entry(self, table: str, level: str, node: str) -> Document:
        return self.variant.setdefault(table, {}).setdefault(level, {}).setdefault(node, {})  # type: ignore[no-any-return]

    def _size(self, table: str, iterators: Callable[[Any], tuple[str, ...]]) -> None:
        level = self.draw.choice(self.levels)
        names = [name for name, expr in self.nodes.items() if iterators(expr)]
        if table == "tiles" and self.draw.random() < 0.9:
            names = [name for name in names if not self.followed(name, level)]
        name = self.draw.choice(names)
        iterator = self.draw.choice(iterators(self.nodes[name]))
        self._entry(table, level, name)[iterator] = self.draw.randint(1, self.nodes[name].domain[iterator].value)

    def followed(self, name: str, level: str) -> bool:
        """Whether a node is connected to one that reads it, whose tile it follows."""
        edges = self.group["connect"].items()
        above = self.levels[self.levels.index(level) :]
        return any(edge.startswith(f"{name}->") and connected in above for edge, connected in edges)

    def tile(self) -> None:
        self._size("tiles", lambda expr: expr.spatial)

    def step(self) -> None:
        self._size("steps", lambda expr: expr.reduce)

    def connect(self) -> None:
        if self.group["connect"]:
            self.group["connect"][self.draw.choice(sorted(self.group["connect"]))] = self.draw.choice(self.levels)

    def order(self) -> None:
        name = list(self.nodes)[-1]
        spatial = self.nodes[name].spatial
        entries = self.variant.setdefault("order", {}).setdefault(self.draw.choice(self.levels), {})
        entries[name] = self.draw.sample(spatial, len(spatial))

    def tail(self) -> None:
        entries = self.variant.setdefault("tails", {}).setdefault(self.draw.choice(self.levels), {})
        entries[list(self.nodes)[-1]] = self.draw.choice(["shift", "clip"])


@dataclass(frozen=True)
class Edited:
    model: str
    plan: Plan
    program: Program


def edited(count: int, seed: int, path: Path) -> tuple[list[Edited], Counter[str]]:
    """`count` legal plans, the models in turn, and how many others were refused with which code."""
    found: list[Edited] = []
    codes: Counter[str] = Counter()
    draw = random.Random(seed)
    models: Iterator[str] = iter(sorted(MODELS) * 100 * count)
    while len(found) < count:
        model = next(models)
        document = written(MODELS[model], path)
        Editor(document, MODELS[model], draw).change()
        plan = read_back(document, path)
        try:
            (program,) = generated(plan, path.parent).programs.values()
        except PlanError as error:
            codes[error.code] += 1
            continue
        found.append(Edited(model, plan, program))
    return found, codes


# -- what is checked --------------------------------------------------------------------------------------


def trips(program: Program) -> Counter[str]:
    """Loop -> how often it runs at most."""
    found: Counter[str] = Counter()
    for iteration in program_iterations(program)[1]:
        name, value = iteration[-1]
        found[name] = max(found[name], value + 1)
    return found


def check_loops(one: Edited, kernel: Kernel) -> None:
    """From the plan's sizes to the program's loops, and from those to the TIR's, iteration by iteration."""
    made = trips(one.program)
    for loop, count in trip_counts(one.plan.groups[0]).items():
        assert made[loop] == count, (one.model, loop, count, program_text(one.program))
    working, every = program_iterations(one.program)
    found = tir_iterations(kernel, one.program)
    assert working <= found <= every, (one.model, working ^ found, program_text(one.program))


def check(count: int, seed: int, folder: Path) -> None:
    plans, codes = edited(count, seed, folder / "2-plan.json")
    assert set(codes) <= set(REASONS)
    batch = Batch()
    for number, one in enumerate(plans):
        check_loops(one, batch.add(one.program, MODELS[one.model].arrays(number)))
    for number, (one, made) in enumerate(zip(plans, batch.run(folder), strict=True)):
        case = MODELS[one.model]
        reference = case.reference(case.arrays(number))
        for name, value in made.items():
            assert close(value, reference[name].astype(np.float32), 1e-4), (one.model, program_text(one.program))


@pytest.mark.feature("W31", "W33", "W34", "A11", "B17")
def test_edited_plans(tmp_path: Path) -> None:
    """One of each model."""
    check(len(MODELS), 1, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 8))
def test_many_edited_plans(seed: int, tmp_path: Path) -> None:
    check(200, seed, tmp_path)


@pytest.mark.quick_cases("softmax", "norm and matmul")
@pytest.mark.feature("W31")
@pytest.mark.parametrize("model", ["softmax", "hidden layer", "attention", "norm and matmul", "depthwise, pointwise"])
def test_every_tile_shows_in_the_kernel(model: str, tmp_path: Path) -> None:
    """Another size of any one tile gives another tile program and another TIR function."""
    path = tmp_path / "2-plan.json"
    plain = read_back(written(MODELS[model], path), path)
    tiles = plain.groups[0].variants[0].tiles
    texts = {kernel_text(plain, tmp_path)}
    for level, node, iterator in [(lv, n, i) for lv, of in tiles.items() for n, sizes in of.items() for i in sizes]:
        document = written(MODELS[model], path)
        sizes = document["groups"][0]["variants"][0]["tiles"][level][node]
        sizes[iterator] = max(1, sizes[iterator] - 1) if sizes[iterator] > 1 else 2
        texts.add(kernel_text(read_back(document, path), tmp_path))
    count = sum(len(sizes) for of in tiles.values() for sizes in of.values())
    assert len(texts) == 1 + count
    assert len({program for program, _ in texts}) == len({function for _, function in texts}) == 1 + count


def kernel_text(plan: Plan, folder: Path) -> tuple[str, str]:
    """The tile program and the TIR of a plan's kernel."""
    (program,) = generated(plan, folder).programs.values()
    kernel = emit(program, AVX512)
    functions = (kernel.function, *kernel.parts.values())
    return program_text(program), "".join(str(function.script(show_meta=True)) for function in functions)
