"""A part of a model as a folder: model, inputs, recipe and device, to be compiled as the whole was."""

from __future__ import annotations

import io
import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilec.artifact import atomic_open

if TYPE_CHECKING:
    from tilec.spec.recipe import CompileRecipe
    from tilec.verify.submodels import Part

MODEL, INPUTS, RECIPE, DEVICE, BUILD = "model.onnx", "inputs.npz", "recipe.yaml", "device.yaml", "build"
"""The files of a part, and the folder that it is compiled into."""

_RECORD = "tuning.json"


def command_of(folder: Path) -> str:
    """The command line that compiles a part and verifies it with its inputs."""
    return f"tilec compile {folder / MODEL} --recipe {folder / RECIPE} -o {folder / BUILD}"


def write_part_folder(part: Part, about: Sequence[str], recipe: CompileRecipe, device_text: str, output: Path) -> None:
    """Write a part; `about` stands in front of its recipe. Each file is written aside and renamed."""
    import numpy as np

    from tilec.verify.submodels import write_part

    with tempfile.TemporaryDirectory(prefix="tilec-") as temporary:
        write_part(part, Path(temporary) / MODEL)
        made = {path.name: path.read_bytes() for path in Path(temporary).iterdir()}
    memory = io.BytesIO()
    arrays: dict[str, Any] = {n: a.astype(str) if a.dtype.hasobject else a for n, a in part.feeds.items()}
    np.savez_compressed(memory, **arrays)
    made |= {INPUTS: memory.getvalue(), DEVICE: device_text.encode()}
    if recipe.schedule.record is not None and Path(recipe.schedule.record).is_file():
        made[_RECORD] = Path(recipe.schedule.record).read_bytes()
    made[RECIPE] = _recipe_text(about, recipe, _RECORD in made).encode()
    for name, data in made.items():
        with atomic_open(output / name) as file:
            file.write(data)


def _recipe_text(about: Sequence[str], recipe: CompileRecipe, recorded: bool) -> str:
    """The recipe that compiles the part as the whole was compiled, and verifies it with its inputs."""
    given = recipe.model_dump(mode="json", exclude_defaults=True, exclude={"shapes", "device"})
    given.get("schedule", {}).pop("profile", None)
    given.get("schedule", {}).pop("record", None)
    schedule = {**given.pop("schedule", {}), "bounds": False, **({"record": _RECORD} if recorded else {})}
    verify = {**given.pop("verify", {}), "inputs": INPUTS}
    keys = {"device": DEVICE, **given, "schedule": schedule, "verify": verify}
    keys.pop("kind", None)
    lines = [f"{key}: {json.dumps(value)}" for key, value in keys.items()]
    return "\n".join([*(f"# {line}" for line in about), "kind: compile", *lines]) + "\n"
