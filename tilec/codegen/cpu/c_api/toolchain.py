"""The system's C compiler and binutils: sources and object files to a shared object and a static library."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tilec.errors import TilecError, UnavailableError

FLAGS = ("-std=gnu99", "-O2", "-fPIC", "-fvisibility=hidden", "-Wall", "-Wno-unused-function", "-Wno-type-limits")


def link_libraries(source: Path, objects: Sequence[Path], exported: Sequence[str], folder: Path, name: str) -> None:
    """Compile `source` and link it with `objects` into `libNAME.so` and `libNAME.a` of `folder`.

    Only the `exported` functions are seen from outside, so that a program can hold any number of models. CC names the
    compiler (default: cc). Raises UnavailableError where a tool is missing, TilecError with its message when it fails.
    """
    compiler, work = _compiler(), source.parent
    joined, shared, static = work / "joined.o", work / f"lib{name}.so", work / f"lib{name}.a"
    members = [work / "session.o", *objects]
    _run([*compiler, *FLAGS, "-c", source.name, "-o", members[0].name], work)
    _run([*compiler, "-r", "-nostdlib", "-o", joined.name, *(path.name for path in members)], work)
    keep = [f"--keep-global-symbol={symbol}" for symbol in exported]
    _run([_tool("objcopy"), *keep, joined.name], work)
    _run([*compiler, "-shared", "-Wl,-z,noexecstack,-z,defs", f"-Wl,-soname,{shared.name}", joined.name,
          "-lm", "-lpthread", "-o", shared.name], work)  # fmt: skip
    _run([_tool("ar"), "rcsD", static.name, joined.name], work)
    for built in (shared, static):
        os.replace(shutil.copyfile(built, folder / f".{built.name}.tmp"), folder / built.name)


def _compiler() -> list[str]:
    command = shlex.split(os.environ.get("CC", "")) or ["cc"]
    return [_tool(command[0], "CC"), *command[1:]]


def _tool(name: str, variable: str = "") -> str:
    path = shutil.which(name)
    if path is None:
        other = f", or set {variable} to one" if variable else ""
        raise UnavailableError(f"{name}, which links models for C programs, is not installed",
                               hint=f"Install gcc and binutils{other}.")  # fmt: skip
    return path


def _run(command: Sequence[str], folder: Path) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        last = (done.stderr.strip().splitlines() or [f"exit {done.returncode}"])[-1]
        raise TilecError(f"{Path(command[0]).name} failed: {last}", hint="Is CC a compiler for the device's target?")
