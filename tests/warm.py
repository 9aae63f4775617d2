"""Processes that begin as forks of one that has imported what they need, which saves each of them most of a second.

They are as fresh as those that `tilec.verify.remote` spawns: the one they fork has run nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from multiprocessing import forkserver, get_context

import pytest

from tilec.verify import remote

NEEDED = "tests.warm_imports"
"""The module that imports what the processes of `verify` and `bench` do."""


@pytest.fixture(autouse=True, scope="module")
def warm_processes() -> Iterator[None]:
    """Inside a module that imports this, remote objects live in forks."""
    context = get_context("forkserver")
    context.set_forkserver_preload([NEEDED])
    forkserver.ensure_running()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(remote, "CONTEXT", context)
        yield
