"""Tile programs as files: read by people and by the tile machine."""

from __future__ import annotations

from pathlib import Path

from tilec.artifact import digest_bytes, pretty, write_bytes
from tilec.codegen.lowered import Kernels
from tilec.errors import ArtifactError
from tilec.ir.plan import Plan
from tilec.ir.program_codec import program_to_json
from tilec.ir.program_text import program_text
from tilec.ir.verify_program import check_program

FOLDER = "programs"


def write_programs(plan: Plan, made: Kernels, folder: Path) -> dict[str, dict[str, str]]:
    """Write every kernel's program into `folder`/programs, as JSON and as text, after checking that it is legal.

    Returns, for the group that stands for each kernel, the program's file.  Raises ArtifactError for a program
    that is not legal, TilecError when the folder cannot be written.
    """
    shapes = {name: tensor.shape for name, tensor in plan.tensors.items()}
    files = {}
    for name, program in made.programs.items():
        group = made.groups[name].name
        problems = check_program(program, shapes)
        if problems:
            raise ArtifactError(f"illegal plan of group {group}: {problems[0]}", hint="Undo the edit of the plan.")
        data = pretty(program_to_json(program)).encode()
        file = f"{FOLDER}/{name}.json"
        write_bytes(folder / file, data)
        write_bytes(folder / FOLDER / f"{name}.txt", program_text(program).encode())
        files[group] = {"file": file, "kernel": name, "sha256": digest_bytes(data)}
    return files
