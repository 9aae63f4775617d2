"""The forms of a model: its own type, half precision, 8-bit integers, weights of 4 bits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import onnx
from quantised.forms import FORMS, quantise

from tests.gpu_zoo.halves import as_halves
from tilec import zoo


@dataclass(frozen=True)
class Source:
    """A model's file and what the command line is told beside it."""

    model: Path
    options: tuple[str, ...] = ()


def _plain(name: str, folder: Path) -> Source:
    return Source(zoo.export(name, folder / "model.onnx"))


def _halves(element: int) -> Callable[[str, Path], Source]:
    def written(name: str, folder: Path) -> Source:
        onnx.save(as_halves(zoo.build(name), element), folder / "model.onnx")
        return Source(folder / "model.onnx")

    return written


def _integers(name: str, folder: Path) -> Source:
    form = next(each for each in FORMS if each.name == "qdq-u8s8-channel")
    plain = zoo.export(name, folder / "plain.onnx", form="decomposed")
    return Source(quantise(plain, form, folder / "model.onnx"))


def _words(name: str, folder: Path) -> Source:
    recipe = folder / "recipe.yaml"
    recipe.write_text('types:\n  "*": i4[32]*f16\n', encoding="utf-8")
    return Source(_halves(onnx.TensorProto.FLOAT16)(name, folder).model, ("--recipe", str(recipe)))


TYPES: Mapping[str, Callable[[str, Path], Source]] = {
    "f32": _plain,
    "f16": _halves(onnx.TensorProto.FLOAT16),
    "bf16": _halves(onnx.TensorProto.BFLOAT16),
    "u8s8": _integers,
    "w4": _words,
}
"""Type -> the writer of a model in it: u8s8 has activations and weights of 8 bits between QuantizeLinear and
DequantizeLinear, w4 weights of 4 bits in groups of 32 and activations of f16."""
