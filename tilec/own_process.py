"""Processes of tilec's own: the command line, compilers of sessions, timers. They need no PyTorch, and one BLAS thread.

tvm_ffi imports PyTorch wherever that is installed, to take its tensors: seconds, and hundreds of MiB. The matrices that
verify multiplies are small, and many: BLAS's threads spend several times as long waiting for each other.
"""

from __future__ import annotations

import ctypes
import gc
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

BLAS_THREADS = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
"""What NumPy's matrix products take their threads from, as it is imported. OMP_NUM_THREADS would limit kernels, too."""

MALLOPT = {-3: 32 << 20, -1: 64 << 20}
"""Bytes of glibc's M_MMAP_THRESHOLD (its largest) and M_TRIM_THRESHOLD (see mallopt(3))."""

_own = False


def begin() -> None:
    """Let this process be tilec's own, which has imported no NumPy; nothing else in it uses tvm_ffi."""
    global _own
    gc.set_threshold(100_000, 20, 50)  # a compiler's data lives on: collecting garbage takes a tenth of `schedule`
    for variable in BLAS_THREADS:  # processes begun here have them, too
        os.environ.setdefault(variable, "1")
    keep_freed_memory()
    _own = True


def keep_freed_memory() -> None:
    """Let this process reuse the memory of arrays that it frees. Else the C library returns that of larger ones at
    once, and the pages of the next array are cleared anew: the search makes millions of arrays that live shortly."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt is not None:  # glibc's
        for option, size in MALLOPT.items():
            mallopt(option, size)


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


def modules_path() -> str:
    """PYTHONPATH with which a process started with -P has the modules of this one."""
    return os.pathsep.join(folder or current_folder() for folder in sys.path)


def current_folder() -> str:
    """The current folder; the root where it was removed."""
    try:
        return os.getcwd()
    except OSError:
        return os.sep
