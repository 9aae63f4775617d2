"""Streams of a process that were closed before it began, or that take nothing more."""

import os
import sys


def open_streams() -> None:
    """Where a process begins without one of its three streams, let no file take its number: what is read and said goes
    nowhere, results that cannot be written are an error."""
    for number, (name, mode) in enumerate({"stdin": "r", "stdout": "w", "stderr": "w"}.items()):
        if getattr(sys, name) is None:
            os.open(os.devnull, os.O_WRONLY if name == "stderr" else os.O_RDONLY)
            setattr(sys, name, open(number, mode, encoding="utf-8"))  # noqa: SIM115


def abandon_output() -> None:
    """Let what waits for standard output go nowhere, so that Python does not complain when it flushes at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def unwritten(error: OSError) -> str:
    """What is wrong where standard output is."""
    return f"cannot write to standard output: {error.strerror}"
