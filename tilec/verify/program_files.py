"""The tile programs that code generation wrote, by the name of their kernel."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tilec.artifact.filenames import refuse_outside
from tilec.errors import ArtifactError
from tilec.ir.program import Program
from tilec.ir.program_codec import program_from_json


def read_programs(folder: Path, kernels: Mapping[str, Any]) -> dict[str, Program]:
    """The programs of a `folder` by kernel; `kernels` is the data of its 3-kernels.json. Raises ArtifactError if one is
    missing or damaged."""
    programs: dict[str, Program] = {}
    try:
        for written in kernels["programs"].values():
            refuse_outside(written["file"], str(folder))
            path = folder / written["file"]
            programs[written["kernel"]] = program_from_json(json.loads(path.read_text(encoding="utf-8")), str(path))
    except (KeyError, TypeError, AttributeError, OSError, ValueError, RecursionError) as error:
        raise damaged(error, folder) from error
    return programs


def damaged(error: Exception, folder: Path) -> ArtifactError:
    """The error of a program that is missing or damaged."""
    return ArtifactError(f"a tile program is missing or damaged: {error}", str(folder), "Run `tilec codegen` again.")
