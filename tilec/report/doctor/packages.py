"""Checks of Python and the packages that tilec needs: present, in compatible versions, and loadable."""

from __future__ import annotations

import platform
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import PackageNotFoundError, metadata, requires, version
from typing import TYPE_CHECKING

from tilec.report.doctor.finding import Finding

if TYPE_CHECKING:
    from packaging.requirements import Requirement

OWN = "tilec"

NATIVE: Mapping[str, str] = {
    "numpy": "numpy",
    "onnx": "onnx",
    "onnxruntime": "onnxruntime",
    "apache-tvm": "tvm",
    "apache-tvm-ffi-orcjit": "tvm_ffi_orcjit",
}
"""Map from distribution to module, for packages with machine code, which may be installed and fail to load."""

_SECONDS = 60


def python() -> Iterator[Finding]:
    """The interpreter."""
    bits = "64" if sys.maxsize > 1 << 32 else "32"
    here = f"{platform.python_version()} ({platform.python_implementation()}, {bits} bits, {platform.platform()})"
    wanted = _requires_python()
    if wanted and not _allows(wanted, platform.python_version()):
        yield Finding("python", "error", f"{here}: tilec needs {wanted}", "Install that Python and tilec for it.")
    elif bits == "32":
        yield Finding("python", "error", f"{here}: tilec needs 64 bits", "Install a 64-bit Python.")
    else:
        yield Finding("python", "ok", here)


def packages() -> Iterator[Finding]:
    """tilec's requirements and, recursively, theirs; one finding per conflict."""
    try:
        from packaging.requirements import Requirement
    except ImportError:
        yield Finding("packages", "error", "packaging is not installed: versions cannot be compared", _pip("packaging"))
        return
    try:
        tilec_version = f"{OWN} {version(OWN)}"
    except PackageNotFoundError:
        fix = "Install it: pip install -e . in the checkout."
        yield Finding("packages", "warning", "tilec runs from a folder: what it needs is not known", fix)
        return
    seen, waiting, wrong = {OWN}, [OWN], 0
    while waiting:
        owner = waiting.pop(0)
        for wanted in map(Requirement, requires(owner) or ()):
            if wanted.marker is not None and not wanted.marker.evaluate({"extra": ""}):
                continue
            clash = _clash(owner, wanted)
            if clash is not None:
                wrong += 1
                yield clash
            name = wanted.name.lower().replace("_", "-").replace(".", "-")
            if name not in seen and _installed(name) is not None:
                seen.add(name)
                waiting.append(name)
    if not wrong:
        yield Finding("packages", "ok", f"{tilec_version} and the {len(seen) - 1} packages that it needs go together")


def _clash(owner: str, wanted: Requirement) -> Finding | None:
    """The finding of a requirement that is not met, None if it is."""
    installed = _installed(wanted.name)
    needed = f"{owner} {version(owner)} needs {wanted.specifier or 'it'}"
    spelled = _pip(f"{wanted.name}{wanted.specifier}")
    if installed is None:
        return Finding("packages", "error", f"{wanted.name} is not installed: {needed}", spelled)
    if not wanted.specifier.contains(installed, prereleases=True):
        return Finding("packages", "error", f"{wanted.name} {installed} is installed: {needed}", spelled)
    return None


def loading(run: Callable[[str], str] | None = None) -> Iterator[Finding]:
    """Whether packages with machine code load, each in a process of its own; `run` imports a module and returns the
    error message."""
    there = {name: module for name, module in NATIVE.items() if _installed(name) is not None}
    with ThreadPoolExecutor(2) as pool:
        messages = list(pool.map(run or _imported, there.values()))
    for name, wrong in zip(there, messages, strict=True):
        if wrong:
            fix = f"Install it anew: pip install --force-reinstall {name}=={_installed(name)}"
            yield Finding("loading", "error", f"{name} is installed and does not load: {wrong}", fix)
    if not any(messages):
        yield Finding("loading", "ok", ", ".join(f"{name} {_installed(name)}" for name in there))


def _imported(module: str) -> str:
    """Import a module in a child process; returns the error in one line, empty on success."""
    command: Sequence[str] = [sys.executable, "-c", f"import {module}"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    if done.returncode < 0:
        return f"it is ended by signal {-done.returncode}"
    lines = done.stderr.strip().splitlines()
    return (lines[-1] if lines else f"exit code {done.returncode}") if done.returncode else ""


def _installed(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _requires_python() -> str:
    try:
        return str(metadata(OWN).json.get("requires_python", ""))
    except PackageNotFoundError:
        return ""


def _allows(specifier: str, installed: str) -> bool:
    """Whether a version satisfies a specifier; True where `packaging` is missing."""
    try:
        from packaging.specifiers import SpecifierSet
    except ImportError:
        return True
    return SpecifierSet(specifier).contains(installed, prereleases=True)


def _pip(wanted: str) -> str:
    return f"pip install '{wanted}'"
