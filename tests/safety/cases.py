"""The malformed inputs of the test: 300 drawn from seeds, and those that are written by hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx

from tests.safety import protobuf, seeds, text

MODELS = range(160)
SPECS = range(60)
ARTIFACTS = range(80)

FILES = ("1-graph.json", "2-plan.json", "3-kernels.json", "4-report.json")

VERBS: dict[str, tuple[tuple[str, ...], ...]] = {
    "1-graph.json": (("inspect", "1-graph.json"), ("schedule", ".", "--device", "avx2")),
    "2-plan.json": (("inspect", "2-plan.json"), ("codegen", ".")),
    "3-kernels.json": (("inspect", "."), ("run", ".")),
    "4-report.json": (("inspect", "4-report.json"), ("inspect", ".")),
}
"""Artifact -> the commands that read it."""


@dataclass(frozen=True)
class Case:
    """A file to write and the commands that are to read it, until one refuses."""

    file: str
    data: bytes
    commands: tuple[tuple[str, ...], ...]


def model(seed: int) -> Case:
    """A model with one mistake or two."""
    random = np.random.default_rng(seed)
    made = seeds.MODELS[seed % len(seeds.MODELS)]().SerializeToString()
    if random.random() < 0.25:
        data = protobuf.BYTE_MISTAKES[random.integers(len(protobuf.BYTE_MISTAKES))](made, random)
    else:
        data = protobuf.field_mistake(made, onnx.ModelProto.DESCRIPTOR, random)
    last = ("import", "model.onnx", "-o", "out") if seed % 4 else ("inspect", "model.onnx")
    return Case("model.onnx", data, (last,))


def spec(seed: int) -> Case:
    """A device or a recipe with a mistake."""
    random = np.random.default_rng(seed)
    if seed % 2:
        return Case("spec.yaml", text.yaml_mistake(text.DEVICE, random), (("device", "show", "spec.yaml"),))
    return Case("spec.yaml", text.yaml_mistake(text.RECIPE, random), (RECIPE,))


RECIPE = ("compile", "model.onnx", "--recipe", "spec.yaml", "--device", "a100", "--to", "schedule", "-o", "out")


def artifact(seed: int, build: Path) -> Case:
    """An artifact of a compiled model with a mistake."""
    random = np.random.default_rng(seed)
    file = FILES[seed % len(FILES)]
    return Case(file, text.json_mistake((build / file).read_text(encoding="utf-8"), random), VERBS[file])


DRAWN: tuple[tuple[str, int, Callable[..., Case]], ...] = (
    *(("model", seed, model) for seed in MODELS),
    *(("spec", seed, spec) for seed in SPECS),
    *(("artifact", seed, artifact) for seed in ARTIFACTS),
)
"""(kind, seed, how it is made) of the drawn ones."""
