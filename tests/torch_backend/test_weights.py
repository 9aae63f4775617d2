"""Weights are what they are at the call, and what is compiled for them lives as long as they do."""

import gc
import weakref

import pytest

torch = pytest.importorskip("torch", reason="pip install tilec[torch]")

from torch import nn  # noqa: E402

from tilec import refit  # noqa: E402
from tilec.api import worker  # noqa: E402
from tilec.torch_backend import compiled_graph, freed_memory, parameters  # noqa: E402
from tilec.torch_backend.parameters import Parameters  # noqa: E402


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    torch.manual_seed(0)


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return str(tmp_path_factory.mktemp("cache"))


@pytest.fixture
def scheduled(monkeypatch):
    """Models that are scheduled, not refitted."""
    seen, compile_ = [], worker._compile
    monkeypatch.setattr(worker, "_compile", lambda *args: (seen.append(args), compile_(*args)))
    return seen


@pytest.fixture
def begun(monkeypatch):
    """Compilations, refits among them, by the number of their constants."""
    seen, begin = [], compiled_graph.CompiledGraph._begun

    def counted(self, constants, anew=False):
        seen.append(len(constants))
        return begin(self, constants, anew)

    monkeypatch.setattr(compiled_graph.CompiledGraph, "_begun", counted)
    return seen


def compiled(module, cache, **options):
    return torch.compile(module, backend="tilec", options={"cache": cache, **options})


def near(ours, theirs):
    torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)


def tensors():
    return {0: torch.randn(300, 400), 2: torch.zeros(3), 3: torch.randn(5, 7).t(), 4: torch.empty(0, 3)}


@pytest.mark.parametrize("look", ["sampled", "full", "frozen"])
def test_what_each_look_sees(look):
    held = tensors()
    args = [held.get(n) for n in range(5)]
    seen = Parameters(held, look)
    assert seen.are_still(args)
    args[2].data[1] = 5
    assert seen.are_still(args) == (look == "frozen")
    seen = Parameters(held, look)
    args[0].data[299, 399] = 7
    assert seen.are_still(args) == (look == "frozen")
    seen = Parameters(held, look)
    held[0].data[150, 201:204] = 9  # between the blocks
    assert seen.are_still(args) == (look != "full")
    assert not seen.are_still([args[0].clone(), *args[1:]])


def test_what_is_compared_whole_needs_no_count():
    held = tensors()
    args = [held.get(n) for n in range(5)]
    seen = Parameters(held, "sampled")
    args[3].mul_(1)  # small
    assert seen.are_still(args)
    args[3].mul_(2)
    assert not seen.are_still(args)
    seen = Parameters(held, "sampled")
    args[0][150, 201:204] = 9  # large, between the blocks
    assert not seen.are_still(args)


def test_a_look_costs_the_same_for_any_size(monkeypatch):
    for count in (1, 40, 400):
        held = dict(enumerate(torch.zeros(400, 50_000).split(400 // count)[:count]))
        seen = Parameters(held, "sampled")
        blocks = max(parameters.FEWEST * count, parameters.BLOCKS)
        assert len(seen._content) <= parameters.WHOLE + blocks * parameters.BLOCK


def test_memory_that_is_gone_is_not_looked_at():
    held = tensors()
    seen = Parameters(held, "sampled")
    held[0].untyped_storage().resize_(0)
    assert not seen.are_still([held.get(n) for n in range(5)])


def test_equal_modules_are_scheduled_once_and_written_ones_again_never(cache, scheduled, begun):
    blocks = nn.Sequential(*(nn.Sequential(nn.Linear(9, 9), nn.ReLU()) for _ in range(4)))
    run = nn.Sequential(*(compiled(block, cache) for block in blocks))
    x = torch.randn(3, 9)
    with torch.no_grad():
        for _ in range(2):
            near(run(x), blocks(x))
            near(run(x), blocks(x))
            for parameter in blocks.parameters():
                parameter.data.mul_(1.5)
    assert len(scheduled) == 1
    assert begun == [2] * 8


def test_a_parameter_of_one_number_is_an_argument(cache, begun):
    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = nn.Parameter(torch.tensor(2.0))
            self.shift = nn.Parameter(torch.randn(1))

        def forward(self, x):
            return x * self.scale + self.shift

    module, x = Scaled(), torch.randn(3, 6)
    run = compiled(module, cache)
    with torch.no_grad():
        for _ in range(4):
            near(run(x), module(x))
            module.scale.data.add_(1)
            module.shift.data.mul_(2)
    assert begun == [0]


def test_weights_that_change_in_every_call_become_arguments(cache, begun):
    module, x = nn.Linear(6, 4), torch.randn(3, 6)
    run = compiled(module, cache)
    with torch.no_grad():
        for _ in range(8):
            module.weight.data.add_(0.1)
            near(run(x), module(x))
        assert begun == [2] * 3 + [0]
        refit(run)
        near(run(x), module(x))
        assert begun == [2] * 3 + [0, 2]


def test_frozen_weights_are_read_again_when_asked(cache):
    module, x = nn.Linear(6, 4), torch.randn(3, 6)
    run = compiled(module, cache, weights="frozen")
    with torch.no_grad():
        before = run(x)
        module.weight.data.zero_()
        assert torch.equal(run(x), before)
        refit(nn.Linear(2, 2))
        assert torch.equal(run(x), before)
        refit(run)
        near(run(x), module(x))
        module.weight.data.fill_(1)
        refit()
        near(run(x), module(x))


def test_a_deleted_module_frees_what_was_compiled(cache):
    modules = [nn.Linear(6, 4) for _ in range(3)]

    def call(module, x):
        return module(x)

    run, x = compiled(call, cache), torch.randn(3, 6)
    seen = []
    with torch.no_grad():
        for module in modules:
            near(run(module, x), module(x))
    for graph in list(compiled_graph._GRAPHS):
        seen += [weakref.ref(each) for each in graph._entries.values() if each is not None]
    alive = len([each for each in seen if each() is not None])
    del modules[1], module
    gc.collect()
    assert len([each for each in seen if each() is not None]) == alive - 1
    with torch.no_grad():
        near(run(modules[0], x), modules[0](x))


def test_memory_grows_by_no_more_than_the_weights(cache):
    """Resident memory in the steady state: packed weights, no copy of the model."""
    module = nn.Linear(4096, 1024)
    weights = sum(p.numel() * 4 for p in module.parameters())
    warm, run, x = compiled(nn.Linear(4096, 3), cache), compiled(module, cache), torch.randn(4, 4096)
    with torch.no_grad():
        warm(x)
        run(x)
        module.weight.data.mul_(2)
        torch._dynamo.reset()
        gc.collect()
        before = _resident()
        run(x)
        gc.collect()
        near(run(x), module(x))
    assert _resident() - before < 1.1 * weights + (8 << 20)


def test_copies_of_large_weights_are_given_back_once(cache, monkeypatch):
    calls = []
    monkeypatch.setattr(compiled_graph, "give_back", lambda: calls.append(None))
    small, large = compiled(nn.Linear(8, 3), cache), compiled(nn.Linear(512, 600), cache)
    with torch.no_grad():
        small(torch.randn(2, 8))
        assert not calls
        large(torch.randn(2, 512))
        large(torch.randn(2, 512))
    assert len(calls) == 1
    freed_memory.give_back()


def _resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096
