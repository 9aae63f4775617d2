"""Checks of the machine: CPU, usable threads, memory, compilers and GPUs, and whether it was measured."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from tilec.report.doctor.finding import Finding, invalid
from tilec.spec.cpus import usable_cpus
from tilec.spec.host import read_host
from tilec.spec.units import BYTES

Output = Callable[[Sequence[str]], str | None]
"""The standard output of a command; None when it is missing or fails."""

_LEAST_VECTOR = 32
"""Bytes of a vector register (AVX2) below which x86 kernels are slow."""

_LEAST_MEMORY = 2 << 30

_SECONDS = 10


def cpu(root: Path = Path("/")) -> Iterator[Finding]:
    """The processor and its vector instructions; `root` is the folder that contains /proc."""
    host = read_host(root)
    has = [feature[1:] for feature in host.features if feature.startswith("+")]
    text = f"{host.model} ({host.triple}, {host.processor}), vectors of {host.vector_bytes} bytes: "
    text += " ".join(has) or "no feature is known"
    if host.triple.startswith("x86_64") and host.vector_bytes < _LEAST_VECTOR:
        fix = "In a virtual machine, pass the host's CPU through; else expect slow kernels."
        yield Finding("cpu", "warning", f"{text}; avx2 and fma are not there", fix)
    else:
        yield Finding("cpu", "ok", text)


def threads(root: Path = Path("/"), environ: Mapping[str, str] = os.environ) -> Iterator[Finding]:
    """Number of useful threads, and the limits on them."""
    cores, usable, all_ = read_host(root).cores, len(usable_cpus()), os.cpu_count() or 1
    limits = [f"affinity leaves {usable} of {all_} logical CPUs"] if usable < all_ else []
    quota = _quota(root)
    if quota is not None and quota < usable:
        limits.append(f"the control group leaves {quota:g}")
    text = f"{cores} cores for {all_} logical CPUs" + "".join(f"; {limit}" for limit in limits)
    yield Finding("threads", "info" if limits else "ok", text, "Raise the limit if more were meant." if limits else "")
    asked = environ.get("TILEC_THREADS")
    if asked is None:
        return
    if not asked.isdecimal() or not int(asked):
        yield invalid("threads", f"TILEC_THREADS is {asked!r}", "Set it to a number of threads from 1, or unset it.")
    elif int(asked) > cores:
        yield Finding(
            "threads", "warning", f"TILEC_THREADS is {asked}, more than {cores} cores", "Unset TILEC_THREADS."
        )


def memory(root: Path = Path("/")) -> Iterator[Finding]:
    """Memory that this process may use."""
    size = read_host(root).memory
    text = f"{size / (1 << 30):.1f} GiB may be used"
    if size < _LEAST_MEMORY:
        fix = f"Give at least {BYTES.format(_LEAST_MEMORY)}: compilers need it."
        yield Finding("memory", "warning", text, fix)
    else:
        yield Finding("memory", "ok", text)


def compilers(output: Output | None = None) -> Iterator[Finding]:
    """Compilers and GPUs; plans for GPUs do not need them, and a C++ compiler builds their kernels for the emulator."""
    ask = output or printed
    for name, without in (("nvcc", _NO_NEED), ("hipcc", _NO_NEED), ("g++", _TILES_ONLY)):
        version_text = ask([name, "--version"])
        lines = (version_text or "").splitlines()
        named = [line for line in lines if "release" in line or "version" in line] or lines
        yield _optional(name, version_text is not None, named[0].strip() if named else "found", without)
    gpus = ask(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"])
    names = "; ".join((gpus or "").strip().splitlines())
    yield _optional("gpu", bool(names), names, _NO_NEED)


_NO_NEED = "plans and tile programs for GPUs need none"

_TILES_ONLY = "without one (or clang++) `verify` runs tile programs of GPUs, not their kernels"


def _optional(check: str, there: bool, text: str, without: str) -> Finding:
    return Finding(check, "info", text if there else f"not found; {without}")


def printed(command: Sequence[str]) -> str | None:
    """Standard output of a command; None when it is missing, fails or takes too long."""
    path = shutil.which(command[0])
    if path is None:
        return None
    try:
        done = subprocess.run(
            [path, *command[1:]], capture_output=True, text=True, timeout=_SECONDS, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


def measured() -> Iterator[Finding]:
    """Whether the device `host` has been measured."""
    from tilec.spec.probe import known_text
    from tilec.spec.probe_record import ADVICE, probe_record

    text = known_text()
    probe = probe_record(text) if text is not None else None
    if probe is None:
        text, fix = "this machine was not measured yet; the first use does it", "To do it now: tilec device probe"
        yield Finding("host", "info", text, fix)
    elif probe.disturbed:
        text = f"this machine was measured beside other work, {probe.time}: it took {probe.busy:.0%} of the time, "
        text += f"repetitions differ by {probe.spread:.0%}; plans for host assume too slow a machine"
        yield Finding("host", "warning", text, f"{ADVICE[0].upper()}{ADVICE[1:]}.")
    else:
        yield Finding("host", "ok", "this machine was measured; `tilec device show host` tells the figures")


def _quota(root: Path) -> float | None:
    """CPUs that the control group allows; None without a limit."""
    try:
        quota, _, period = (root / "sys/fs/cgroup/cpu.max").read_text(encoding="utf-8").strip().partition(" ")
    except OSError:
        return None
    return int(quota) / int(period) if quota.isdecimal() and period.isdecimal() and int(period) else None
