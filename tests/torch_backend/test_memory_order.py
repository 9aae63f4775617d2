"""Strides of results are eager PyTorch's, or those that it traces, for functions of torch in every memory format.

What orders and restores elements is the backend's own; PyTorch computes the graph between, for compiled code.
"""

import pytest
import sympy

torch = pytest.importorskip("torch", reason="pip install tilec[torch]")

from torch._dynamo.exc import BackendCompilerFailed  # noqa: E402
from torch.utils import _pytree as pytree  # noqa: E402

from tilec.torch_backend import compiled_graph  # noqa: E402
from tilec.torch_backend.arrays import array_of, tensor_of  # noqa: E402
from tilec.torch_backend.memory_order import numbers, with_strides  # noqa: E402
from torch_backend.functions import FUNCTIONS  # noqa: E402

FORMATS = {
    "contiguous": lambda x: x,
    "reversed": lambda x: x.permute(*reversed(range(x.dim()))).contiguous().permute(*reversed(range(x.dim()))),
    "channels last": lambda x: x.contiguous(memory_format=torch.channels_last) if x.dim() == 4 else x,
    "with gaps": lambda x: torch.stack([x, x], -1)[..., 0],
}


@pytest.fixture(autouse=True)
def computed_by_pytorch(monkeypatch):
    """Sessions that evaluate the graph that was translated."""
    torch._dynamo.reset()
    translate, seen = compiled_graph.translate, []

    def translated(module, constants, name):
        made = translate(module, constants, name)
        seen.append((module, constants, made))
        return made

    class Session:
        def __init__(self):
            self.module, self.constants, self.ports = seen[-1]

        def run(self, _names, feeds):
            values = {port.position: tensor_of(feeds[port.name]) for port in self.ports.inputs} | dict(self.constants)
            count = len([node for node in self.module.graph.nodes if node.op == "placeholder"])
            results = self.module(*(values.get(n) for n in range(count)))
            results = results if isinstance(results, tuple | list) else (results,)
            first = {port.name: port.position for port in reversed(self.ports.outputs)}
            names = dict.fromkeys(port.name for port in self.ports.outputs)
            return [array_of(torch.as_tensor(results[first[name]]).contiguous()) for name in names]

        def addressed(self, _shapes):
            return None

    monkeypatch.setattr(compiled_graph, "translate", translated)
    monkeypatch.setattr(compiled_graph, "_opened", lambda *_args: Session())


def traced(call, inputs):
    """Strides of results as PyTorch traces them: some kernels make others, and later graphs rely on the former."""
    seen = []

    def backend(module, _inputs):
        nodes = next(node for node in module.graph.nodes if node.op == "output").args[0]
        seen.extend(node.meta["example_value"].stride() for node in nodes if isinstance(node, torch.fx.Node))
        return module.forward

    torch._dynamo.reset()
    with torch.no_grad():
        torch.compile(call, backend=backend, dynamic=False)(*inputs)
    return seen


def difference(name, form):
    """What is wrong with the strides of a function's results."""
    function = FUNCTIONS[name]
    torch.manual_seed(0)

    def changed(value):
        return FORMATS[form](value) if isinstance(value, torch.Tensor) and value.dim() > 1 else value

    inputs = pytree.tree_map(changed, function.inputs(5))
    try:
        wanted = pytree.tree_leaves(function.call(*inputs))
    except RuntimeError:
        return ""
    torch.manual_seed(0)
    inputs = pytree.tree_map(changed, function.inputs(5))
    run = torch.compile(function.call, backend="tilec", dynamic=False, options={"strict": True})
    try:
        with torch.no_grad():
            ours = pytree.tree_leaves(run(*inputs))
    except BackendCompilerFailed:  # parts of it stay in PyTorch
        return ""
    for a, b in zip(ours, wanted, strict=True):
        if isinstance(b, torch.Tensor) and a.stride() != b.stride() and a.stride() not in traced(function.call, inputs):
            return f"{name}, {form}: shape {tuple(b.shape)}, strides {a.stride()} for {b.stride()}"
    return ""


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", list(FUNCTIONS)[3::30])
def test_strides_of_functions(name):
    wrong = [difference(name, form) for form in FORMATS]
    assert not any(wrong), [each for each in wrong if each]


@pytest.mark.parametrize("form", ["contiguous", "channels last"])
def test_results_of_open_sizes_are_dense(form, monkeypatch):
    """Nothing is copied, though strides are expressions over sizes that are divided."""
    module = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3, stride=2, padding=1), torch.nn.MaxPool2d(2))
    if form == "channels last":
        module.to(memory_format=torch.channels_last)
    graphs, order = [], compiled_graph.in_memory_order

    def noted(*args):
        graphs.append(order(*args))
        raise ValueError

    monkeypatch.setattr(compiled_graph, "in_memory_order", noted)
    with torch.no_grad(), pytest.warns(UserWarning, match="PyTorch runs"):
        torch.compile(module, backend="tilec", dynamic=True)(FORMATS[form](torch.randn(2, 3, 17, 19)))
    orders = [each for graph in graphs for each in graph.outputs.values()]
    assert [(each.order, each.dense) for each in orders] == [((0, 2, 3, 1), True)] * (form == "channels last")


def test_values_go_into_any_strides():
    values = torch.arange(12.0).reshape(3, 4)
    for strides in ((4, 1), (1, 3), (9, 2), (1, 5)):
        made = with_strides(values, strides)
        assert made.stride() == strides
        assert torch.equal(made, values)
    rows = torch.arange(5.0).unfold(0, 3, 1)
    assert torch.equal(with_strides(rows.contiguous(), rows.stride()), rows)
    wide = torch.arange(3.0)[:, None].expand(3, 4)
    assert with_strides(wide.contiguous(), (1, 0)).untyped_storage().nbytes() == 12
    assert with_strides(torch.empty(0, 3), (3, 2)).stride() == (3, 2)


def test_strides_over_symbols_have_numbers_where_symbols_have():
    n, m = sympy.Symbol("n"), sympy.Symbol("m")
    assert numbers((2 * n, 1), {n: 4}) == (8, 1)
    assert numbers((m * n, 1), {n: 4}) is None
