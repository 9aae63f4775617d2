"""The models by name: the module that builds each, and its sizes."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

from tilec.errors import UsageError, did_you_mean
from tilec.zoo.forms import Dim, Size

if TYPE_CHECKING:
    from tilec.zoo.builder import GraphBuilder


@dataclass(frozen=True)
class Entry:
    """A model of the zoo.

    `seq` is the default of the extent that `--seq` sets, None where the model has none; `symbol` is its name when
    dynamic ("height" for pixels, whose width is the symbol "width"), or the number that it keeps; `longest` the largest
    value that the model's tables allow.
    """

    module: str
    description: str
    function: str = "build"
    opset: int = 20
    seq: int | None = None
    symbol: Dim = "seq"
    longest: int | None = None

    def load(self) -> "Callable[[GraphBuilder, Size], None]":
        """The function that adds the model to a builder; imports onnx."""
        build: Callable[[GraphBuilder, Size], None] = getattr(import_module(f"tilec.zoo.{self.module}"), self.function)
        return build


_TINY_LLAMA = "TinyLlama decoder layer (2048 channels, 32 query and 4 key heads)"

MODELS = {
    "mobilenet-v2": Entry("mobilenet", "MobileNetV2 1.0: images 3x224x224 to 1000 logits"),
    "shufflenet-v2": Entry("shufflenet", "ShuffleNetV2 x1.0: images 3x224x224 to 1000 logits"),
    "resnet-50": Entry("resnet", "ResNet-50: images 3x224x224 to 1000 logits"),
    "vgg16": Entry("vgg", "VGG16: images 3x224x224 (--seq pixels along both axes) to 1000 logits", seq=224, symbol=224),
    "unet": Entry("unet", "U-Net: images 3x256x256 (--seq pixels) to maps of 2 classes", seq=256, symbol="height"),
    "bert-base": Entry("bert", "BERT base: 12 layers of 768 channels over 128 tokens", seq=128, longest=512),
    "gpt2": Entry("gpt2", "GPT-2 without head: 12 layers of 768 channels over 128 tokens", seq=128, longest=1024),
    "vit-s32": Entry(
        "vit", "ViT-S/32: images 3x224x224 as 50 tokens of 384 channels to 1000 logits", function="build_small"
    ),
    "vit-b16": Entry(
        "vit", "ViT-B/16: images 3x224x224 as 197 tokens of 768 channels to 1000 logits", function="build_base"
    ),
    "swin-t": Entry("swin", "Swin-T: images 3x224x224 in shifted windows of 7x7 patches to 1000 logits"),
    "mobilevit-s": Entry("mobilevit", "MobileViT-S: images 3x256x256 by convolutions and transformers to 1000 logits"),
    "nafnet": Entry(
        "nafnet",
        "NAFNet(3, 16, 1, [1, 1, 1], [1, 1, 1]): restores images 3x256x256 (--seq pixels)",
        seq=256,
        symbol="height",
    ),
    "restormer": Entry(
        "restormer",
        "Restormer: restores images 3x256x256 (--seq pixels) by attention between channels",
        seq=256,
        symbol="height",
    ),
    "bsrn": Entry("bsrn", "BSRN x4: images 3x256x256 to 3x1024x1024"),
    "conformer": Entry("conformer", "Conformer: 12 layers of 512 channels over 512 frames", seq=512),
    "nerf-mlp": Entry("nerf", "NeRF MLP: 259200 rows of 64 through 7 layers to 3", seq=259200, symbol="batch"),
    "llama-layer-prefill": Entry(
        "llama",
        f"{_TINY_LLAMA}: a prompt of 128 tokens",
        function="build_prefill",
        opset=23,
        seq=128,
        longest=2048,
    ),
    "llama-layer-decode": Entry(
        "llama",
        f"{_TINY_LLAMA}: token 512 with 511 in the cache",
        function="build_decode",
        opset=23,
        seq=512,
        symbol="past",
        longest=2048,
    ),
}


def find(name: str) -> Entry:
    """The entry of `name`. Raises UsageError that names the nearest model."""
    if name in MODELS:
        return MODELS[name]
    near = did_you_mean(name, MODELS)
    hint = f"Did you mean {near!r}? " if near else ""
    raise UsageError(f"no model {name!r} in the zoo", hint=f"{hint}The zoo has {', '.join(MODELS)}.")
