"""Files of `torch.export.save`: a process with PyTorch makes an ONNX file of one, in the folder of its build."""

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tilec import errors
from tilec.cli.console import Console
from tilec.errors import TilecError, UnavailableError
from tilec.extras import install

SUFFIX = ".pt2"

Range = tuple[int, int | None]


def model_of(file: Path, folder: Path, console: Console) -> tuple[Path, Mapping[str, Range]]:
    """The ONNX file of a model, and the ranges of its sizes: of an exported program one that is written into `folder`.

    Raises what is wrong with the program, UnavailableError where PyTorch is not installed.
    """
    if file.suffix != SUFFIX:
        return file, {}
    if importlib.util.find_spec("torch") is None:
        raise UnavailableError("PyTorch reads this file, and is not installed", str(file), f"Run `{install('torch')}`.")
    if not file.exists():  # which is told as of any model, without starting PyTorch
        return file, {}
    target = folder / f"{file.stem}.onnx"
    path = os.pathsep.join(each or os.getcwd() for each in sys.path)
    done = subprocess.run(
        [sys.executable, "-P", "-m", "tilec.torch_backend.program_file", str(file), str(target)],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    lines = done.stdout.strip().splitlines()
    try:
        said = json.loads(lines[-1])
    except (ValueError, IndexError):
        last = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        hint = "This is a bug in tilec. Run again with --debug for the traceback."
        if console.debug:
            console.note(done.stderr)
        raise TilecError(f"the program is not translated: {last}", str(file), hint) from None
    if done.returncode:
        kind: type[TilecError] = getattr(errors, said["kind"])
        raise kind(said["message"], said["place"], said["hint"])
    return target, {symbol: (low, high) for symbol, (low, high) in said["ranges"].items()}
