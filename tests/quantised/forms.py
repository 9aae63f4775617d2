"""Models of the zoo, made small and quantised by onnxruntime in each form that it writes."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import onnx
from acceptance.miniatures import miniature
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_dynamic, quantize_static
from onnxruntime.quantization.shape_inference import quant_pre_process

MODELS = ("mobilenet-v2", "shufflenet-v2", "resnet-50", "unet", "bert-base", "gpt2", "vit-s32", "conformer")
"""Four networks of convolutions and four transformers."""

BATCHES = 4
"""Number of random inputs from which the ranges of activations are calibrated."""


@dataclass(frozen=True)
class Form:
    """A form of quantised models: the format of the nodes (None where activations are quantised at run time), the type
    of activations (weights are int8), and whether weights have a scale per output channel."""

    name: str
    format: QuantFormat | None
    activations: QuantType
    per_channel: bool


FORMS = tuple(
    Form(f"{name}-{'channel' if per_channel else 'tensor'}", written, activations, per_channel)
    for name, written, activations in (
        ("qdq-u8s8", QuantFormat.QDQ, QuantType.QUInt8),
        ("qdq-s8s8", QuantFormat.QDQ, QuantType.QInt8),
        ("qoperator-u8s8", QuantFormat.QOperator, QuantType.QUInt8),
        ("dynamic-u8s8", None, QuantType.QUInt8),
    )
    for per_channel in (False, True)
)


def quantised(name: str, form: Form, path: Path) -> Path:
    """Write the small model `name` of the zoo in a quantised form."""
    with TemporaryDirectory() as folder:
        return quantise(miniature(name, "decomposed", Path(folder)), form, path)


def quantise(plain: Path, form: Form, path: Path) -> Path:
    """Write a model in a quantised form."""
    logging.getLogger().setLevel(logging.ERROR)  # it warns of the preprocessing that is done here
    with TemporaryDirectory() as folder:
        prepared = Path(folder) / "prepared.onnx"
        quant_pre_process(plain, prepared, skip_symbolic_shape=True)
        if form.format is None:
            quantize_dynamic(prepared, path, per_channel=form.per_channel, weight_type=QuantType.QInt8)
        else:
            quantize_static(
                prepared,
                path,
                _Calibration(prepared),
                quant_format=form.format,
                per_channel=form.per_channel,
                activation_type=form.activations,
                weight_type=QuantType.QInt8,
            )
    return path


class _Calibration(CalibrationDataReader):  # type: ignore[misc]  # onnxruntime has no types
    """Random inputs of a model: normal floats, ids below the extents that the small models have."""

    def __init__(self, model: Path) -> None:
        graph = onnx.load(model).graph
        self._ports = [(port.name, port.type.tensor_type) for port in graph.input]
        self._batches = self._drawn()

    def get_next(self) -> Mapping[str, Any] | None:
        """The next inputs by name."""
        return next(self._batches, None)

    def _drawn(self) -> Iterator[Mapping[str, Any]]:
        for seed in range(BATCHES):
            generator = np.random.default_rng(seed)
            feeds = {}
            for name, form in self._ports:
                shape = [dim.dim_value for dim in form.shape.dim]
                floats = form.elem_type == onnx.TensorProto.FLOAT
                feeds[name] = (
                    generator.standard_normal(shape).astype(np.float32) if floats else generator.integers(0, 2, shape)
                )
            yield feeds
