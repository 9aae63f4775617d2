"""Random numbers and image files: operators that only the reference runs."""

from __future__ import annotations

from tilec.importer.operator import Op
from tilec.importer.registry import operator
from tilec.importer.value import Value


@operator("Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike")
def _random(op: Op) -> Value:
    raise op.unsupported(
        "random numbers are kept to the reference: a seed means its generator",
        "Draw them outside the model and pass them as an input to compile this node.",
    )


@operator("ImageDecoder")
def _image_decoder(op: Op) -> Value:
    raise op.unsupported(
        "decoding image files is kept to the reference", "Decode outside the model and pass pixels as an input."
    )
