"""Tile programs as files, for people and for the tile machine."""

from __future__ import annotations

from pathlib import Path

from tilec.artifact import digest_bytes, pretty, write_bytes
from tilec.codegen.kernels import Kernels
from tilec.ir.program_codec import program_to_json
from tilec.ir.program_text import program_text

FOLDER = "programs"


def write_programs(kernels: Kernels, folder: Path) -> dict[str, dict[str, str]]:
    """Write every kernel's program into `folder`/programs, as JSON and as text.

    Returns, for the group that stands for each kernel, the program's file; further variants of a group stand beside it
    under `group/kernel`.  Raises TilecError when the folder cannot be written.
    """
    files: dict[str, dict[str, str]] = {}
    for name, program in kernels.programs.items():
        group = kernels.groups[name].name
        data = pretty(program_to_json(program)).encode()
        file = f"{FOLDER}/{name}.json"
        write_bytes(folder / file, data)
        write_bytes(folder / FOLDER / f"{name}.txt", program_text(program).encode())
        files[group if group not in files else f"{group}/{name}"] = {
            "file": file,
            "kernel": name,
            "sha256": digest_bytes(data),
        }
    return files
