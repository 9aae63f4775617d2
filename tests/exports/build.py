"""`python -m tests.exports.build [NAME]`: export a model, and keep feeds and PyTorch's results at four sizes.

Without a name the models are listed, each with its exporter. Runs in the environment of the exports.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import onnx
import torch

from tests.exports.environment import FOLDER
from tests.exports.models import EXPORTS, Export, Outputs


def main(name: str, folder: Path) -> None:
    """Write `folder/NAME.onnx` and `FOLDER/NAME-I.npz`, one for each set of sizes."""
    (export,) = (each for each in EXPORTS if each.name == name)
    torch.manual_seed(0)
    model = export.build().eval()
    _write(export, model, folder / f"{name}.onnx")
    results = [put.name for put in onnx.load(folder / f"{name}.onnx").graph.output]
    for number, sizes in enumerate(export.sizes):
        feeds = export.feeds(sizes)
        with torch.no_grad():
            found = model(*feeds.values())
        outputs = (found,) if isinstance(found, torch.Tensor) else found
        arrays = {f"feed:{key}": value.numpy() for key, value in feeds.items()}
        arrays |= {f"result:{key}": value.numpy() for key, value in zip(results, outputs, strict=True)}
        np.savez(folder / f"{name}-{number}.npz", **arrays)


def _write(export: Export, model: torch.nn.Module, path: Path) -> None:
    feeds = export.feeds(export.sizes[1])
    names = list(feeds)
    if export.exporter == "torchscript":
        axes = {name: dict(axes) for name, axes in export.axes.items()}
        torch.onnx.export(
            model,
            tuple(feeds.values()),
            str(path),
            input_names=names,
            dynamic_axes=axes,
            dynamo=False,
            opset_version=17,
        )
        return
    shapes = tuple(dict(export.axes.get(name, {})) for name in names)
    open_axes = (shapes,) if isinstance(model, Outputs) else shapes
    program = torch.onnx.export(model, tuple(feeds.values()), input_names=names, dynamic_shapes=open_axes, dynamo=True)
    assert program is not None
    program.save(str(path), external_data=False)


if __name__ == "__main__":
    if not sys.argv[1:]:
        print(*(f"{each.name} {each.exporter}" for each in EXPORTS), sep="\n")
    for argument in sys.argv[1:]:
        main(argument, FOLDER)
