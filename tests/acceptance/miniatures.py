"""The zoo's models with few and narrow layers: the operators and shapes of the big ones, compiled in a second."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from unittest import mock

from tilec import zoo
from tilec.zoo import cnn
from tilec.zoo.registry import MODELS

PIXELS = 32

SMALL = {
    "mobilenet-v2": ("mobilenet", {"STAGES": ((1, 8, 1, 1), (6, 12, 2, 2))}),
    "shufflenet-v2": ("shufflenet", {"STAGES": ((2, 16, PIXELS // 8), (2, 36, PIXELS // 16))}),
    "resnet-50": ("resnet", {"STAGES": ((1, 8, 1), (2, 12, 2))}),
    "vgg16": ("vgg", {"STAGES": ((2, 8), (1, 12)), "POOLED": 3, "HIDDEN": 20, "CLASSES": 10}),
    "unet": ("unet", {"CHANNELS": (4, 8, 16)}),
    "bert-base": ("bert", {"VOCABULARY": 50, "LAYERS": 1, "CHANNELS": 24, "HEADS": 3, "HIDDEN": 40}),
    "vit-s32": (
        "vit",
        {"PATCH": 8, "PATCHES": 16, "TOKENS": 17, "LAYERS": 1, "CHANNELS": 24, "HEADS": 3, "HIDDEN": 40},
    ),
    "nafnet": ("nafnet", {"PIXELS": PIXELS, "WIDTH": 4, "LEVELS": 2}),
    "nerf-mlp": ("nerf", {"LAYERS": 3}),
    "llama-layer-prefill": ("llama", {"CHANNELS": 32, "HEADS": 4, "KEY_HEADS": 2, "HIDDEN": 44, "HEAD": 8}),
    "llama-layer-decode": ("llama", {"CHANNELS": 32, "HEADS": 4, "KEY_HEADS": 2, "HIDDEN": 44, "HEAD": 8}),
}
"""Model -> its module of the zoo and the sizes to build it with."""

SEQ = {"bert-base": 7, "nerf-mlp": 37, "llama-layer-prefill": 5, "llama-layer-decode": 6}
SEQ |= dict.fromkeys(("vgg16", "unet"), PIXELS)

SYMBOLS = {
    "bert-base": {"batch": 1, "seq": 7},
    "nerf-mlp": {"batch": 37},
    "llama-layer-prefill": {"batch": 1, "seq": 5},
    "llama-layer-decode": {"batch": 1, "past": 5},
}
"""What the symbols of a dynamic model are to be bound to so that it equals the static one."""


def symbols(name: str) -> dict[str, int]:
    return SYMBOLS.get(name, {"batch": 1})


def miniature(name: str, form: str, folder: Path, dynamic: bool = False) -> Path:
    """Write the small model into `folder`."""
    module, sizes = SMALL[name]
    image, entry = cnn.image, MODELS[name]
    small = replace(entry, symbol=SEQ[name]) if isinstance(entry.symbol, int) else entry
    with (
        mock.patch.dict(MODELS, {name: small}),
        mock.patch.multiple(f"tilec.zoo.{module}", **sizes),
        mock.patch("tilec.zoo.cnn.image", lambda graph, size, _pixels: image(graph, size, PIXELS)),
    ):
        return zoo.export(
            name,
            folder / "model.onnx",
            form=form,
            dynamic=dynamic,
            seq=None if dynamic else SEQ.get(name),
        )
