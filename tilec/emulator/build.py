"""Builds kernels for the CPU with the C++ compiler that this machine has; libraries are kept by digest."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from functools import cache
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory

from tilec.errors import TilecError, UnavailableError

HEADERS = Path(__file__).with_name("include")

_NAMES = ("g++", "clang++")

_FLAGS = (
    "-std=c++17",
    "-O1",
    "-w",
    "-fPIC",
    "-fvisibility=hidden",
    "-ffp-contract=off",
    "-fno-strict-aliasing",
    "-U_FORTIFY_SOURCE",
    "-fno-stack-protector",
    "-DTILE_EMULATOR",
)
"""Threads change stacks by longjmp, which fortified code forbids; libraries share no variables."""

_LOOP = re.compile(r"(\bfor \((?:int|unsigned) \w+ = [^;]*; )([^;]*)(;)")

_POISON = "-ftrivial-auto-var-init=pattern"
"""Variables that are read before they are written have large values, the same in every run."""


@cache
def compiler() -> str | None:
    """The path of a C++ compiler; None where this machine has none."""
    return next((path for path in map(shutil.which, _NAMES) if path is not None), None)


def build_kernels(text: str, kernels: Sequence[str], headers: Mapping[str, str], folder: Path, lanes: int = 32) -> Path:
    """The library of the `kernels` of a CUDA `text`, built into `folder` unless it is there.

    `headers` are files that the text includes, by name: `tile.h` includes the emulator's `emu.h`. A warp has so many
    `lanes`. Raises UnavailableError without a compiler, TilecError with its words for text that does not compile.
    """
    path = compiler()
    if path is None:
        raise UnavailableError("no C++ compiler builds GPU kernels for the emulator", hint="Install g++ or clang++.")
    folder.mkdir(parents=True, exist_ok=True)
    command = (path, *_FLAGS, f"-DEMU_LANES={lanes}")
    engine = _built((*command, "-O2", "-c"), {}, str(HEADERS / "engine.cc"), folder, ".o")
    entries = "".join(f"EMU_ENTRY({name})\n" for name in kernels)
    source = f'#include "engine.h"\n#line 1 "kernels.cu"\n{_with_rounds(text)}\n{entries}'
    files = {**headers, "source.cc": source}
    return _built((*command, *_poison(path), "-shared", str(engine)), files, "source.cc", folder, ".so")


def _with_rounds(text: str) -> str:
    """The text with loops that tell the emulator of their rounds."""
    return _LOOP.sub(lambda loop: f"{loop[1]}emu::goes_on(__LINE__, {loop[2]}){loop[3]}", text)


def kernel_text(text: str, symbol: str) -> str:
    """The text with one of its kernels; lines of the others are empty, so that numbers of lines stay."""
    lines = text.splitlines()
    starts = [number for number, line in enumerate(lines) if line.startswith("T_KERNEL")]
    kept = set(range(starts[0] if starts else len(lines)))
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        if f" {symbol}(" in "\n".join(lines[start:end]).partition("{")[0]:
            kept.update(range(start, end))
    return "\n".join(line if number in kept else "" for number, line in enumerate(lines)) + "\n"


def _built(command: Sequence[str], files: Mapping[str, str], source: str, folder: Path, suffix: str) -> Path:
    """The output of a compiler's command on `source`, one of these files or a path; kept in `folder` by digest."""
    parts = [*command, source, *(f"{name}\n{content}" for name, content in sorted(files.items()))]
    target = folder / (sha256(_headers() + "\0".join(parts).encode()).hexdigest()[:32] + suffix)
    if target.exists():
        return target
    with TemporaryDirectory(prefix="tilec-", dir=folder) as name:
        scratch = Path(name)
        for file, content in files.items():
            (scratch / file).write_text(content, encoding="utf-8")
        made = scratch / f"made{suffix}"
        flags = [f"-I{scratch}", f"-I{HEADERS}", "-o", str(made)]
        done = subprocess.run(
            [*command[:1], str(scratch / source), *command[1:], *flags], capture_output=True, text=True
        )
        if done.returncode:
            words = next((line for line in done.stderr.splitlines() if "error" in line), done.stderr.strip()[:300])
            raise TilecError(f"a GPU kernel does not compile for the emulator: {words}", hint=f"{command[0]} says so.")
        os.replace(made, target)
    return target


@cache
def _poison(path: str) -> tuple[str, ...]:
    """The flag by which variables begin with a pattern, where the compiler knows it."""
    command = [path, _POISON, "-fsyntax-only", "-x", "c++", os.devnull]
    return (_POISON,) if subprocess.run(command, capture_output=True, check=False).returncode == 0 else ()


@cache
def _headers() -> bytes:
    return b"".join(path.name.encode() + path.read_bytes() for path in sorted(HEADERS.iterdir()))
