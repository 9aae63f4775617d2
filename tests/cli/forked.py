"""`tilec` in forks of a process that has imported what verbs need: fresh, at a hundredth of a process's cost."""

from __future__ import annotations

import importlib
import multiprocessing
import os
import resource
import select
import signal
import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tilec.verify import remote

SECONDS = 60
"""Of CPU time that a call may take."""
PATIENCE = 600
"""Seconds of the clock."""
MEMORY = 24 << 30


@dataclass(frozen=True)
class Ended:
    """A call that ended: exit code (negative: a signal) and its two streams."""

    code: int
    out: str
    err: str


NEEDED = (
    "onnx",
    "onnxruntime",
    "tvm",
    "tilec.bench.candidate",
    "tilec.codegen.driver",
    "tilec.cli.app",
    "tilec.importer",
)


def warm() -> None:
    """Import what verbs need."""
    for name in NEEDED:
        importlib.import_module(name)


def called(
    arguments: Sequence[str],
    folder: Path,
    variables: Mapping[str, str | None] | None = None,
    before: Callable[[], None] = lambda: None,
    closed_after: int | None = None,
) -> Ended:
    """Call `tilec ARGUMENTS` in a folder, with other environment variables (None: without), after what `before` does in
    the process; stdout is closed after so many bytes."""
    (out, out_end), (err, err_end) = os.pipe(), os.pipe()
    process = os.fork()
    if not process:
        for each in (out, err):
            os.close(each)
        _become(arguments, folder, variables or {}, before, out_end, err_end)
    for each in (out_end, err_end):
        os.close(each)
    said, reading = {out: b"", err: b""}, {out, err}
    limit = time.monotonic() + PATIENCE
    while reading:
        ready, _, _ = select.select(list(reading), [], [], max(0, limit - time.monotonic()))
        if not ready:
            os.killpg(process, signal.SIGKILL)
            break
        for each in ready:
            said[each] += (chunk := os.read(each, 1 << 16))
            if not chunk or (each == out and closed_after is not None and len(said[out]) >= closed_after):
                reading.remove(each)
                os.close(each)
    for each in reading:
        os.close(each)
    _, status = os.waitpid(process, 0)
    return Ended(os.waitstatus_to_exitcode(status), *(text.decode(errors="replace") for text in said.values()))


def _become(
    arguments: Sequence[str],
    folder: Path,
    variables: Mapping[str, str | None],
    before: Callable[[], None],
    out: int,
    err: int,
) -> None:
    """Be that process, to its end."""
    code: object = 1
    try:
        os.setpgid(0, 0)
        os.dup2(out, 1)
        os.dup2(err, 2)
        sys.stdout = open(1, "w", encoding="utf-8")  # noqa: SIM115
        sys.stderr = open(2, "w", encoding="utf-8", buffering=1)  # noqa: SIM115
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.chdir(folder)
        for name, value in variables.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value
        remote.CONTEXT = multiprocessing.get_context("fork")
        sys.argv = ["tilec", *arguments]
        before()
        from tilec.cli import main

        main()
        code = 0
    except SystemExit as end:
        code = end.code
    except BaseException:
        traceback.print_exc()
    finally:
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except OSError as error:
                os.write(err, f"Exception ignored: {error}\n".encode())
        os._exit(code if isinstance(code, int) else 0 if code is None else 1)
