"""The backend around the compiler: options, parameters that change, operators that stay in PyTorch, refusals."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from tilec.api import compiling, warn_once, worker
from tilec.errors import UsageError

torch = pytest.importorskip("torch", reason="pip install tilec[torch]")

from torch import nn  # noqa: E402
from torch._dynamo.exc import BackendCompilerFailed  # noqa: E402
from torch.nn import functional  # noqa: E402

from tilec.torch_backend import backend, compile_graph, compiled_graph  # noqa: E402
from tilec.torch_backend.options import Options, chosen_options  # noqa: E402
from tilec.torch_backend.translation import OPERATORS, UntranslatableError, translate  # noqa: E402


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    torch.manual_seed(0)


@pytest.fixture
def compiled(tmp_path):
    """A module, compiled."""

    def make(module, **more):
        options = {"cache": str(tmp_path), **more.pop("options", {})}
        return torch.compile(module, backend="tilec", options=options, **more)

    return make


@pytest.fixture
def begun(monkeypatch):
    """Compilations, as they begin."""
    seen, begin = [], compiled_graph.CompiledGraph._begun

    def counted(self, constants, anew=False):
        seen.append(sorted(constants))
        return begin(self, constants, anew)

    monkeypatch.setattr(compiled_graph.CompiledGraph, "_begun", counted)
    return seen


def near(ours, theirs):
    torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)


@pytest.mark.feature("B18")
def test_one_compilation_for_twenty_sizes(compiled, begun):
    module = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 4)).eval()
    run = compiled(module, dynamic=True, fullgraph=True)
    with torch.inference_mode():
        for n in range(2, 22):
            x = torch.randn(n, n + 30, 8)
            near(run(x), module(x))
    assert len(begun) == 1


def test_sizes_are_results(compiled):
    class Shapes(nn.Module):
        def forward(self, x):
            return x.reshape(-1), x.shape[0] * 2 + x.shape[1]

    run = compiled(Shapes(), dynamic=True, fullgraph=True)
    with torch.no_grad():
        for shape in ((3, 5), (7, 2)):
            flat, number = run(torch.ones(shape))
            assert (flat.shape, number) == ((shape[0] * shape[1],), shape[0] * 2 + shape[1])


def test_parameters_are_constants_until_they_change(compiled, begun):
    module = nn.Linear(3, 2).eval()
    run, x = compiled(module), torch.randn(4, 3)
    with torch.no_grad():
        near(run(x), module(x))
        near(run(x), module(x))
        assert begun == [[0, 1]]
        module.weight.mul_(2)
        near(run(x), module(x))
        near(run(x), module(x))
    assert begun == [[0, 1], [0, 1]]


def test_buffers_that_a_module_writes_are_arguments(compiled, begun):
    class Counter(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("count", torch.zeros(2))

        def forward(self, x):
            self.count += x.sum()
            return x * self.count[0]

    module, run = Counter(), None
    run = compiled(module)
    with torch.no_grad():
        for expected in (6.0, 12.0, 18.0):
            assert torch.equal(run(torch.ones(6)), torch.full((6,), expected))
    assert torch.equal(module.count, torch.full((2,), 18.0))
    assert begun == [[]]


def test_memory_is_shared_and_strides_are_heeded(compiled):
    run = compiled(nn.ReLU())
    with torch.no_grad():
        x = torch.randn(6, 8).t()[::2]
        for _ in range(3):
            near(run(x), torch.relu(x))
        half = torch.randn(4, 4).to(torch.bfloat16)
        assert run(half).dtype == torch.bfloat16
        near(run(half), torch.relu(half))


def test_prepared_calls_take_other_sizes_and_threads(compiled, begun):
    """The second call of a shape goes by addresses: what was prepared for one tensor is not used on another."""
    module = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 3)).eval()
    run = compiled(module, dynamic=True, fullgraph=True)
    with torch.inference_mode():
        inputs = [torch.randn(n, 8) for n in (4, 4, 7, 4, 7)]
        for x in inputs * 2:
            near(run(x), module(x))

        def many(x):
            with torch.inference_mode():
                return [run(x) for _ in range(50)]

        with ThreadPoolExecutor(4) as threads:
            for x, results in zip(inputs, threads.map(many, inputs), strict=True):
                for ours in results:
                    near(ours, module(x))
                assert len({ours.data_ptr() for ours in results}) == len(results)
    assert len(begun) == 1


def test_indices_are_looked_at_in_every_call(compiled):
    module = nn.Embedding(10, 4)
    run = compiled(module)
    with torch.no_grad():
        for ids in (torch.tensor([1, 9]), torch.tensor([0, 3])):
            near(run(ids), module(ids))
        for wrong in (10, -11, 1 << 40):
            with pytest.raises(IndexError, match="index out of range in self"):
                run(torch.tensor([0, wrong]))
        near(run(torch.tensor([2, 2])), module(torch.tensor([2, 2])))


class Small(nn.Module):
    def forward(self, x):
        return torch.expm1(x), torch.log1p(x)


def test_small_and_large_numbers_keep_their_digits(compiled):
    x = torch.tensor([-0.999, -0.5, -1e-7, 0.0, 1e-30, 1e-7, 3e-4, 0.9, 1.0, 20.0, 80.0, float("inf"), float("nan")])
    with torch.no_grad():
        for ours, exact in zip(compiled(Small())(x), Small()(x.double()), strict=True):
            torch.testing.assert_close(ours.double(), exact, rtol=1e-6, atol=0, equal_nan=True)


def test_closed_rows_of_attention_are_zero_and_nan_stays(compiled):
    class Masked(nn.Module):
        def forward(self, q, k, v, mask):
            return functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)

    q, k, v = torch.randn(3, 1, 1, 4, 8)
    q[0, 0, 2, 0] = float("nan")
    mask = torch.ones(1, 1, 4, 4, dtype=torch.bool)
    mask[0, 0, 1] = False
    with torch.no_grad():
        ours, theirs = compiled(Masked())(q, k, v, mask), Masked()(q, k, v, mask)
    assert (ours[0, 0, 1] == 0).all()
    assert ours[0, 0, 2].isnan().all()
    torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5, equal_nan=True)


def test_operators_without_translation_stay_in_pytorch(compiled):
    class Mixed(nn.Module):
        def forward(self, x):
            y = torch.erfinv(torch.tanh(x * 0.5 + 0.1))
            return torch.exp(-y) + y.abs()

    assert torch.ops.aten.erfinv.default not in OPERATORS
    run, x = compiled(Mixed(), fullgraph=True), torch.randn(5, 3)
    with (
        torch.no_grad(),
        pytest.warns(UserWarning, match=r"PyTorch runs 1 operator of a graph of 8(.|\n)*aten\.erfinv"),
    ):
        near(run(x), Mixed()(x))


def test_a_compiler_is_started_ahead_for_new_graphs_alone(compiled, monkeypatch):
    from contextlib import nullcontext

    started = []
    monkeypatch.setattr(backend, "compiler_started", lambda device: started.append(device) or nullcontext())

    def run(module, *shape, **options):
        torch._dynamo.reset()
        with torch.no_grad():
            compiled(module, options=options)(torch.randn(*shape))
        return len(started)

    assert run(nn.Linear(5, 3), 2, 5) == 1
    assert run(nn.Linear(5, 3), 2, 5) == 1  # other weights
    assert run(nn.Linear(5, 3), 4, 5) == 2
    assert run(nn.Linear(5, 3), 4, 5, while_compiling="eager") == 2
    assert run(nn.Linear(5, 3), 6, 5, while_compiling="eager") == 2
    assert run(nn.Linear(5, 3), 6, 5) == 3
    with pytest.warns(UserWarning, match="Gradients flow"):
        compiled(nn.Linear(5, 3))(torch.randn(7, 5))
    assert len(started) == 3


@pytest.fixture
def gate(monkeypatch):
    """Compilations in the background wait until the gate is set, and then do what a list tells them, or compile."""
    opened, errors = threading.Event(), []

    def build(request):
        assert request.background
        opened.wait(60)
        if errors:
            raise errors.pop(0)
        worker.build(request)

    monkeypatch.setattr(compiling, "_run", build)
    opened.errors = errors
    yield opened
    opened.set()


def until_ready(run, x):
    """The results of calls until one of them is not by PyTorch's hand."""
    for _ in range(600):
        yield run(x)
        time.sleep(0.05)


def until_told(run, x):
    """Call until there is a warning, or for 30 s."""
    before = len(warn_once._said)
    for _ in until_ready(run, x):
        if len(warn_once._said) > before:
            return


def test_pytorch_serves_while_the_compiler_works(compiled, gate, monkeypatch):
    monkeypatch.delenv("TILEC_WHILE_COMPILING")
    calls = []
    known = compiled_graph.KnownShapes
    monkeypatch.setattr(compiled_graph, "KnownShapes", lambda *given: calls.append(1) or known(*given))
    run, x = compiled(nn.Softmax(-1)), torch.randn(3, 5)
    with torch.no_grad():
        for _ in range(2):
            near(run(x), torch.softmax(x, -1))
        assert not calls
        gate.set()
        for result in until_ready(run, x):
            near(result, torch.softmax(x, -1))
            if calls:
                break
    assert calls


def test_what_fails_to_compile_meanwhile_is_told_at_a_later_call(compiled, gate):
    gate.errors[:] = [RuntimeError("the compiler was killed"), RuntimeError("the compiler was killed")]
    x = torch.randn(3, 5)
    run = compiled(nn.Softmax(-1), options={"while_compiling": "eager"})
    strict = compiled(nn.Tanh(), options={"while_compiling": "eager", "strict": True})
    with torch.no_grad():
        near(run(x), torch.softmax(x, -1))
        near(strict(x), torch.tanh(x))
        gate.set()
        with pytest.warns(UserWarning, match=r"PyTorch runs a graph: .*the compiler was killed"):
            until_told(run, x)
        near(run(x), torch.softmax(x, -1))
        with pytest.raises(RuntimeError, match="the compiler was killed"):
            list(until_ready(strict, x))


@pytest.mark.parametrize(
    ("mode", "options", "said"),
    [
        ("fastest", None, "mode is 'fastest'\n  The modes are default, reduce-overhead, max-autotune"),
        (None, {"devise": "host"}, "backend tilec has no option 'devise'\n  Did you mean 'device'?"),
        (None, {"while_compiling": "never"}, "while_compiling is 'never', it is 'wait' or 'eager'"),
        (None, {"weights": "some"}, "weights is 'some', it is 'sampled' or 'full' or 'frozen'"),
        (None, {"strict": "yes"}, "strict is 'yes', it is False or True"),
    ],
)
def test_options_that_there_are_not(mode, options, said):
    with pytest.raises(UsageError) as caught:
        chosen_options(mode, options)
    assert str(caught.value).startswith(said)


@pytest.mark.parametrize(
    ("mode", "options", "said"),
    [
        ("max-autotune", None, "mode 'max-autotune' has no effect"),
        (None, {"epilogue_fusion": True, "threads": 1}, "option 'epilogue_fusion' is inductor's"),
    ],
)
def test_what_inductor_takes_is_said_once_to_have_no_effect(mode, options, said):
    warn_once.forget()
    with pytest.warns(UserWarning, match=said) as seen:
        chosen = [chosen_options(mode, options) for _ in range(2)]
    assert len(seen) == 1
    assert chosen[0] == Options(threads=(options or {}).get("threads"))


def test_gradients_flow_in_pytorch_with_one_warning(compiled):
    warn_once.forget()
    module, x = nn.Linear(3, 2), torch.randn(4, 3)
    run = compiled(module)
    with pytest.warns(UserWarning, match="Gradients flow through it.* torch.inference_mode") as seen:
        run(x).sum().backward()
    assert len(seen) == 1
    torch.testing.assert_close(module.weight.grad, x.sum(0).expand(2, 3))


def test_strict_raises_what_pytorch_would_run(compiled):
    run = compiled(nn.Linear(3, 2), options={"strict": True})
    with pytest.raises(BackendCompilerFailed, match=r"Gradients flow(.|\n)*torch.inference_mode"):
        run(torch.randn(4, 3))
    embedding = compiled(nn.Embedding(10, 4), options={"strict": True})
    with torch.no_grad(), pytest.raises(UsageError, match="index 10 at"):
        embedding(torch.tensor([10]))


def test_whatever_fails_pytorch_runs(compiled, monkeypatch):
    from tilec.errors import UnsupportedError
    from tilec.torch_backend import backend

    warn_once.forget()
    x = torch.randn(4, 3)

    def fails(*_args):
        raise failure

    for failure in (UnsupportedError("no tiles fit"), AssertionError("never")):
        torch._dynamo.reset()
        monkeypatch.setattr(backend, "compiled_parts", fails)
        with torch.no_grad(), pytest.warns(UserWarning, match=f"PyTorch runs a graph.*{failure}"):
            assert torch.equal(compiled(nn.ReLU())(x), x.relu())
        with torch.no_grad(), pytest.raises(BackendCompilerFailed, match=str(failure)):
            compiled(nn.ReLU(), options={"strict": True})(x)


def test_tensors_of_other_devices_stay_in_pytorch(compiled):
    warn_once.forget()
    run = compiled(lambda x: x * 2)
    with (
        torch.no_grad(),
        pytest.warns(UserWarning, match="are on meta. tilec runs graphs on the CPU"),
    ):
        assert run(torch.empty(3, device="meta")).shape == (3,)


def test_it_is_registered():
    assert "tilec" in torch._dynamo.list_backends(exclude_tags=())
    assert torch._dynamo.lookup_backend("tilec") is compile_graph


def test_a_size_that_no_input_has_is_refused():
    from torch import fx

    graph = fx.Graph()
    x = graph.placeholder("x")
    x.meta["val"] = torch.empty(2)
    n = graph.placeholder("n")
    n.meta["val"] = 1.5
    graph.output((x, n))
    with pytest.raises(UntranslatableError, match=r"n \(1.5\) is no extent of an input"):
        translate(fx.GraphModule({}, graph), {}, "g")
    assert Options().device == "host"


def test_pytorch_breaks_a_graph_where_a_value_decides_a_shape(compiled, recwarn):
    def padded(x, n):
        return nn.functional.pad(x * 2, (n, n), "reflect") + 1

    warn_once.forget()
    x, n = torch.randn(2, 3, 8), torch.tensor(2)
    with torch.no_grad():
        assert torch.equal(compiled(padded)(x, n), padded(x, n))
    assert not [each for each in recwarn if "PyTorch runs a graph" in str(each.message)]
