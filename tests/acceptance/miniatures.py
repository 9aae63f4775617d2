"""The zoo's models with few and narrow layers: the operators and shapes of the big ones, compiled in a second."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from unittest import mock

from tilec import zoo
from tilec.zoo import cnn
from tilec.zoo.builder import GraphBuilder
from tilec.zoo.encoder import Width
from tilec.zoo.forms import Dim, Size
from tilec.zoo.mobilevit import Stage
from tilec.zoo.registry import MODELS
from tilec.zoo.vit import Vit

PIXELS = 32
MOBILEVIT = (Stage(6, 1, 2), Stage(8, 1, 2, (12, 20, 1)))

SMALL = {
    "mobilenet-v2": ("mobilenet", {"STAGES": ((1, 8, 1, 1), (6, 12, 2, 2))}),
    "shufflenet-v2": ("shufflenet", {"STAGES": ((2, 16, PIXELS // 8), (2, 36, PIXELS // 16))}),
    "resnet-50": ("resnet", {"STAGES": ((2, 8, 2),)}),
    "vgg16": ("vgg", {"STAGES": ((2, 8), (1, 12)), "POOLED": 3, "HIDDEN": 20, "CLASSES": 10}),
    "unet": ("unet", {"CHANNELS": (4, 8)}),
    "bert-base": ("bert", {"VOCABULARY": 50, "LAYERS": 1, "CHANNELS": 24, "HEADS": 3, "HIDDEN": 40}),
    "gpt2": ("gpt2", {"VOCABULARY": 50, "POSITIONS": 16, "LAYERS": 1, "CHANNELS": 24, "HEADS": 3, "HIDDEN": 40}),
    "vit-s32": ("vit", {"SMALL_32": Vit(PIXELS, 8, 1, Width(24, 3, 40, 1e-6))}),
    "vit-b16": ("vit", {"BASE_16": Vit(PIXELS, 16, 1, Width(32, 2, 48, 1e-6))}),
    "swin-t": (
        "swin",
        {
            "PIXELS": PIXELS,
            "WINDOW": 4,
            "CHANNELS": 8,
            "EXPANSION": 2,
            "DEPTHS": (2, 1),
            "HEADS": (2, 4),
            "CLASSES": 10,
        },
    ),
    "mobilevit-s": (
        "mobilevit",
        {"PIXELS": PIXELS, "STEM": 4, "LAST": 20, "CLASSES": 10, "EXPANSION": 2, "HEADS": 2, "STAGES": MOBILEVIT},
    ),
    "nafnet": ("nafnet", {"WIDTH": 4, "LEVELS": 1}),
    "restormer": (
        "restormer",
        {"CHANNELS": 4, "BLOCKS": (1, 1), "HEADS": (1, 2), "REFINEMENT": 1, "EXPANSION": 1.5},
    ),
    "bsrn": (
        "bsrn",
        {"PIXELS": PIXELS, "CHANNELS": 8, "BLOCKS": 2, "UPSCALE": 2, "CHANNEL_REDUCTION": 4},
    ),
    "conformer": ("conformer", {"LAYERS": 1, "CHANNELS": 24, "HEADS": 3, "HIDDEN": 40, "KERNEL": 5}),
    "nerf-mlp": ("nerf", {"LAYERS": 3}),
    "llama-layer-prefill": ("llama", {"CHANNELS": 32, "HEADS": 4, "KEY_HEADS": 2, "HIDDEN": 44, "HEAD": 8}),
    "llama-layer-decode": ("llama", {"CHANNELS": 32, "HEADS": 4, "KEY_HEADS": 2, "HIDDEN": 44, "HEAD": 8}),
}
"""Model -> its module of the zoo and the sizes to build it with."""

LONG = ("gpt2", "vit-b16", "swin-t", "mobilevit-s", "restormer", "bsrn", "conformer")
"""Models that take long to plan and compile even when small, or say little that others do not."""

SEQ = {"bert-base": 7, "gpt2": 7, "conformer": 6, "nerf-mlp": 37, "llama-layer-prefill": 5, "llama-layer-decode": 6}
SEQ |= dict.fromkeys(("vgg16", "unet", "nafnet", "restormer"), PIXELS)

SYMBOLS = {
    "bert-base": {"batch": 1, "seq": 7},
    "gpt2": {"batch": 1, "seq": 7},
    "conformer": {"batch": 1, "seq": 6},
    "nerf-mlp": {"batch": 37},
    "llama-layer-prefill": {"batch": 1, "seq": 5},
    "llama-layer-decode": {"batch": 1, "past": 5},
    **{name: {"batch": 1, "height": PIXELS, "width": PIXELS} for name in ("unet", "nafnet", "restormer")},
}
"""What the symbols of a dynamic model are to be bound to so that it equals the static one."""


def symbols(name: str) -> dict[str, int]:
    return SYMBOLS.get(name, {"batch": 1})


@contextmanager
def shrunk(name: str) -> Iterator[None]:
    """Inside, the zoo builds the model `name` small."""
    module, sizes = SMALL[name]
    image, entry = cnn.image, MODELS[name]
    small = replace(entry, symbol=SEQ[name]) if isinstance(entry.symbol, int) else entry

    def small_image(graph: GraphBuilder, size: Size, height: Dim, width: Dim | None = None) -> str:
        """An image whose side the module fixes is small too."""
        return image(graph, size, PIXELS if width is None else height, width)

    with (
        mock.patch.dict(MODELS, {name: small}),
        mock.patch.multiple(f"tilec.zoo.{module}", **sizes),
        mock.patch("tilec.zoo.cnn.image", small_image),
    ):
        yield


def miniature(name: str, form: str, folder: Path, dynamic: bool = False) -> Path:
    """Write the small model into `folder`."""
    with shrunk(name):
        return zoo.export(
            name,
            folder / "model.onnx",
            form=form,
            dynamic=dynamic,
            seq=None if dynamic else SEQ.get(name),
        )
