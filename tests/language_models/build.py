"""`python -m tests.language_models.build FAMILY.FORM`: write a model into a folder of its own, offline.

Forms are those of onnxruntime-genai's builder (`int4`, `fp32`, ...), and `growing-18` and `fixed-23`: PyTorch's export
with caches that grow, or with room for all tokens, for an opset. Runs in the environment of the language models.
"""

from __future__ import annotations

import sys

from tests.language_models import genai
from tests.language_models.environment import FOLDER
from tests.language_models.exports import export, export_decoder
from tests.language_models.families import DECODERS


def main(name: str) -> None:
    """Write `FOLDER/NAME/model.onnx`."""
    family, form = name.rsplit(".", 1)
    if form in genai.FORMS:
        genai.build(family, form, FOLDER / name)
        return
    kind, opset = form.split("-")
    if family in DECODERS:
        export_decoder(family, int(opset), FOLDER / name)
        return
    export(family, kind == "fixed", int(opset), FOLDER / name)


if __name__ == "__main__":
    main(sys.argv[1])
