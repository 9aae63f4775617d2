"""Warnings about what is accepted and has no effect here, each said once in a process."""

import os
import warnings
from pathlib import Path

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_said: set[str] = set()


def warn_once(message: str) -> None:
    """Warn where the package was called from, unless this was said before."""
    if message not in _said:
        _said.add(message)
        warnings.warn(message, UserWarning, stacklevel=_depth())


def host_device(name: str) -> str:
    """`cpu`, the one device that values lie on; another name is warned about once."""
    if str(name).lower() not in ("cpu", ""):
        warn_once(f"there is no device {name!r} here: values stay on the CPU")
    return "cpu"


def forget() -> None:
    """Say everything anew."""
    _said.clear()


def _depth() -> int:
    """The stack level of the first caller outside of this package."""
    import inspect

    frame = inspect.currentframe()
    depth = 0
    while frame is not None and Path(frame.f_code.co_filename).is_relative_to(_PACKAGE):
        frame = frame.f_back
        depth += 1
    return depth
