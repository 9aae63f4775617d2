"""Modules of many kinds through `torch.compile`: the results of PyTorch, one compilation for the sizes that vary."""

import copy

import pytest

torch = pytest.importorskip("torch", reason="pip install tilec[torch]")

from torch._dynamo.utils import counters  # noqa: E402

from tilec.torch_backend import compiled_graph  # noqa: E402
from torch_backend.models import CASES  # noqa: E402

SIZES = (4, 7, 5, 12)


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    torch.manual_seed(0)
    counters.clear()


def flat(results):
    return results if isinstance(results, tuple) else (results,)


@pytest.mark.quick_cases("resnet", "lstm", "in place", "no parameters")
@pytest.mark.feature("A02", "B18")
@pytest.mark.parametrize("name", CASES)
def test_results_are_those_of_pytorch(name, tmp_path, monkeypatch):
    monkeypatch.setattr(torch.backends.mha, "get_fastpath_enabled", lambda: False)
    made = []
    monkeypatch.setattr(compiled_graph.CompiledGraph, "_begun", counted(made, compiled_graph.CompiledGraph._begun))
    case = CASES[name]
    module = case.module().eval()
    reference = copy.deepcopy(module)
    compiled = torch.compile(module, backend="tilec", fullgraph=not case.breaks, options={"cache": str(tmp_path)})
    with torch.no_grad():
        for size in SIZES:
            inputs = case.marked(size)
            given = [each.clone() for each in inputs]
            for ours, theirs in zip(flat(compiled(*inputs)), flat(reference(*given)), strict=True):
                assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype)
                torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)
            for before, after in zip(given, inputs, strict=True):
                assert torch.equal(before, after)
    assert len(made) == 1 or case.breaks
    assert counters["unimplemented"] == {} or case.breaks


def counted(made, function):
    def begin(*args):
        made.append(args)
        return function(*args)

    return begin
