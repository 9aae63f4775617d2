"""Folders with a tiny model and what it compiles to, one for each kind of device and model that verbs tell apart."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp

import numpy as np
from onnx import helper, numpy_helper

from cli import models
from cli.forked import called


def quantised(path: Path) -> Path:
    """A product of bytes between a quantisation and its inverse."""
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "scale", "zero"], ["q"], name="quantise"),
        helper.make_node("MatMulInteger", ["q", "w", "zero"], ["p"], name="product"),
        helper.make_node("Cast", ["p"], ["f"], name="cast", to=1),
        helper.make_node("Mul", ["f", "scale"], ["y"], name="dequantise"),
    ]
    weights = np.random.default_rng(0).integers(-128, 128, (16, 8)).astype(np.int8)
    constants = {"scale": np.float32(0.02), "zero": np.uint8(128), "w": weights}
    initializers = [numpy_helper.from_array(np.asarray(array), name) for name, array in constants.items()]
    return models.save(path, nodes, [models.value("x", 4, 16)], [models.value("y", 4, 8)], initializers)


KINDS: dict[str, tuple[str, Callable[[Path], Path]]] = {
    "cpu": ("host", models.mlp),
    "gpu": ("a100", models.mlp),
    "ipu": ("ipu-mk2", models.mlp),
    "int8": ("host", quantised),
    "open": ("host", lambda path: models.mlp(path, "batch")),
}
"""Kind -> the device that its plan is for, and what writes the model."""

HERE = ("cpu", "int8", "open")
"""Kinds whose code this machine runs."""


@dataclass(frozen=True)
class World:
    """A folder with `model.onnx` and `model.tilec`; each call gets a copy of it."""

    kind: str
    folder: Path

    @property
    def device(self) -> str:
        """What the plan is for."""
        return KINDS[self.kind][0]

    @contextmanager
    def copied(self, name: str = "work") -> Iterator[Path]:
        """A copy that the block may change."""
        root = Path(mkdtemp(prefix="tilec-odd-"))
        try:
            yield Path(shutil.copytree(self.folder, root / name, symlinks=True))
        finally:
            shutil.rmtree(root)


def world(kind: str, folder: Path) -> World:
    """Make the folder of a kind."""
    folder.mkdir(parents=True)
    device, write = KINDS[kind]
    write(folder / "model.onnx")
    ended = called(("compile", "model.onnx", "--device", device, "-o", "model.tilec"), folder)
    assert ended.code == 0, ended.err
    return World(kind, folder)


def listing(folder: Path) -> dict[str, bytes | None]:
    """Every file below a folder with its bytes, every folder."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in sorted(folder.rglob("*"))
    }
