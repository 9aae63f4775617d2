"""Graphs are compiled in this process alone, which saves starts of Python and TVM for each."""

from contextlib import nullcontext

import pytest

from tilec.api import compiling, warn_once, worker
from tilec.scheduler.parallel.child_process import without_children


@pytest.fixture(autouse=True)
def in_this_process(monkeypatch):
    warn_once.forget()
    monkeypatch.setattr(compiling, "_run", worker.build)
    backend = pytest.importorskip("tilec.torch_backend.backend", reason="pip install tilec[torch]")
    monkeypatch.setattr(backend, "compiler_started", lambda device: nullcontext())
    with without_children():
        yield
