"""Processes of tilec's own: the command line, compilers of sessions, timers. They need no PyTorch.

tvm_ffi imports PyTorch wherever that is installed, to take its tensors: seconds, and hundreds of MiB.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_own = False


def begin() -> None:
    """Let this process be tilec's own; nothing else in it uses tvm_ffi."""
    global _own
    gc.set_threshold(100_000, 20, 50)  # a compiler's data lives on: collecting garbage takes a tenth of `schedule`
    _own = True


@contextmanager
def without_torch() -> Iterator[None]:
    """Imports in the block find no PyTorch, in a process of tilec's own."""
    modules: dict[str, Any] = sys.modules
    if not _own or "torch" in modules:
        yield
        return
    modules["torch"] = None
    try:
        yield
    finally:
        del modules["torch"]
