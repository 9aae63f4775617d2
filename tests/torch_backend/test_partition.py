"""Graphs with operators that tilec does not run: PyTorch runs these, and nothing else."""

import logging

import pytest

torch = pytest.importorskip("torch", reason="pip install tilec[torch]")

from torch._dynamo.exc import BackendCompilerFailed  # noqa: E402

from tilec.errors import UnsupportedError  # noqa: E402
from tilec.torch_backend import compiled_graph, partition, translation  # noqa: E402

aten = torch.ops.aten


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    torch.manual_seed(0)


@pytest.fixture
def shares(monkeypatch):
    """For every graph the numbers of operators that it has, that tilec runs, and the names of those refused."""
    seen, told = [], partition.tell

    def tell(report, strict):
        seen.append((report.calls, report.native, sorted(each.operator for each in report.kept.values())))
        told(report, strict)

    monkeypatch.setattr(partition, "tell", tell)
    return seen


def run(function, *inputs, cache, **options):
    compiled = torch.compile(function, backend="tilec", fullgraph=True, options={"cache": str(cache), **options})
    with torch.no_grad():
        torch.testing.assert_close(compiled(*inputs), function(*inputs), rtol=1e-5, atol=1e-6)
    return compiled


def surrounded(x):
    return torch.erf(torch.exp(x) + 1) * 2 - x


@pytest.mark.parametrize("error", [TypeError, IndexError, translation.UntranslatableError])
def test_whatever_a_translation_raises_leaves_its_operator_alone(error, monkeypatch, tmp_path, shares):
    def refuse(t, node, x):
        raise error("not so")

    monkeypatch.setitem(translation.OPERATORS, aten.erf.default, refuse)
    with pytest.warns(UserWarning, match=r"aten\.erf\.default: .*not so"):
        run(surrounded, torch.randn(4, 3), cache=tmp_path)
    assert shares == [(5, 4, ["aten.erf.default"])]


def test_an_operator_that_import_refuses_stays_alone(monkeypatch, tmp_path, shares):
    monkeypatch.setitem(translation.OPERATORS, aten.erf.default, lambda t, node, x: t.emit("Erf", x.name, domain="no"))
    with pytest.warns(UserWarning, match=r"aten\.erf\.default: "):
        run(surrounded, torch.randn(4, 3), cache=tmp_path)
    assert shares == [(5, 4, ["aten.erf.default"])]


def test_a_part_that_does_not_compile_runs_in_pytorch(monkeypatch, tmp_path, shares):
    def opened(*_):
        raise RuntimeError("the code generator is out of registers")

    monkeypatch.setattr(compiled_graph, "_opened", opened)
    with pytest.warns(UserWarning, match=r"tilec cannot compile it \(the code generator is out of registers\)"):
        run(surrounded, torch.randn(4, 3), cache=tmp_path)
    assert shares == [
        (5, 0, [f"aten.{name}" for name in ("add.Tensor", "erf.default", "exp.default", "mul.Tensor", "sub.Tensor")])
    ]


def test_a_run_that_fails_is_made_by_pytorch_from_then_on(monkeypatch, tmp_path):
    compiled, x = run(surrounded, torch.randn(4, 3), cache=tmp_path), torch.randn(4, 3)
    tried = []

    def fails(self, args):
        tried.append(args)
        raise RuntimeError("no memory")

    monkeypatch.setattr(compiled_graph.CompiledGraph, "__call__", fails)
    with torch.no_grad():
        with pytest.warns(UserWarning, match=r"PyTorch runs a graph: .*no memory"):
            assert torch.equal(compiled(x), surrounded(x))
        assert torch.equal(compiled(x), surrounded(x))
    assert len(tried) == 1


def test_strict_raises_with_the_operators(tmp_path):
    with pytest.raises(BackendCompilerFailed, match=r"aten\.erfinv\.default: it has no translation") as caught:
        run(lambda x: torch.erfinv(x * 0.5) + 1, torch.rand(3), cache=tmp_path, strict=True)
    assert isinstance(caught.value.inner_exception, UnsupportedError)
    torch._dynamo.reset()
    run(surrounded, torch.randn(4, 3), cache=tmp_path, strict=True)


def test_the_log_shows_the_line_of_an_operator(tmp_path, caplog):
    caplog.set_level(logging.DEBUG, "tilec")
    with pytest.warns(UserWarning, match="TORCH_LOGS"):
        run(lambda x: torch.erfinv(x * 0.5) + 1, torch.rand(3), cache=tmp_path)
    assert "run(lambda x: torch.erfinv" in caplog.text
    assert "tilec runs 0 of 3 operators of a graph" in caplog.text


@pytest.mark.parametrize(
    "function",
    [
        lambda x: torch.cond(x.sum() > 0, lambda x: x.sin() * 2, lambda x: x.cos() + 1, (x * 2,)) + 1,
        lambda x: torch.exp(torch.complex(x, x * 2)).real * 2 + x.abs(),
        lambda x: torch.linalg.eigvals(x[:3]).abs().sum() + x.exp().sum(-1),
    ],
    ids=["cond", "exponential of complex numbers", "eigenvalues"],
)
@pytest.mark.filterwarnings("ignore:PyTorch runs")
def test_what_has_no_tensors_of_onnx_stays(function, tmp_path, shares):
    run(function, torch.randn(4, 3), cache=tmp_path)
    ((calls, native, kept),) = shares
    assert kept
    assert native > 1
    assert calls >= native + len(kept)
