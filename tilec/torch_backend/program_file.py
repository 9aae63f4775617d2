"""`python -m tilec.torch_backend.program_file PROGRAM MODEL`: a file of `torch.export.save` as an ONNX file.

Prints the ranges of sizes that the program limits as JSON, or the error.
"""

from __future__ import annotations

import json
import logging
import sys
import warnings
from pathlib import Path

import torch
from torch.export import ExportedProgram

from tilec.errors import ConfigError, TilecError, unreadable
from tilec.torch_backend.exported_program import translated_program
from tilec.torch_backend.model_file import write_model


def main(file: str, model: str) -> int:
    """Returns the exit code."""
    warnings.simplefilter("ignore")
    logging.getLogger("torch").setLevel(logging.ERROR)
    try:
        exported = translated_program(_loaded(Path(file)), file, checked=False)
        write_model(exported.translated.model, Path(model))
    except TilecError as error:
        kind = next(each.__name__ for each in type(error).__mro__ if each.__module__ == "tilec.errors")
        print(json.dumps({"kind": kind, "message": error.message, "place": error.place, "hint": error.hint}))
        return error.exit_code
    print(json.dumps({"ranges": exported.ranges}))
    return 0


def _loaded(file: Path) -> ExportedProgram:
    """The program of a file. Raises UsageError where it cannot be read, ConfigError where it holds no program."""
    try:
        with file.open("rb"):
            pass
    except OSError as error:
        raise unreadable(error, str(file)) from error
    try:
        return torch.export.load(file)
    except Exception as error:
        first = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise ConfigError(
            f"PyTorch {torch.__version__} cannot load the program: {first}",
            str(file),
            "`torch.export.save(torch.export.export(model, arguments), FILE)` writes such files.",
        ) from error


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
