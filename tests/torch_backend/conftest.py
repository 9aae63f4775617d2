"""Graphs are compiled in this process alone, which saves starts of Python and TVM for each."""

from contextlib import nullcontext

import pytest

from tilec.api import compiling, in_background, warn_once, worker
from tilec.spec.cpus import without_children


@pytest.fixture(autouse=True)
def in_this_process(monkeypatch):
    warn_once.forget()
    monkeypatch.setattr(compiling, "_run", worker.build)
    monkeypatch.setattr(in_background, "ask", lambda request: False)
    backend = pytest.importorskip("tilec.torch_backend.backend", reason="pip install tilec[torch]")
    monkeypatch.setattr(backend, "compiler_started", lambda device: nullcontext())
    with without_children():
        yield


@pytest.fixture
def native(tmp_path):
    """Checks that a function of inputs in turn is right, and all tilec's; `varies`: compiled for any size."""
    from torch import float32

    from torch_backend.function_judge import judged
    from torch_backend.functions import Function

    def check(call, *inputs, varies=False):
        given = iter(inputs * 3)
        outcome = judged(Function(call, lambda _: next(given)), float32, varies, {"cache": str(tmp_path)})
        assert outcome is not None
        assert (outcome.trouble, outcome.kept) == ("", [])

    return check
