"""LSTM and GRU modules: captured whole, in every variant that ONNX has; the others right all the same."""

import copy
import warnings

import pytest

import tilec
from tilec.api.warn_once import forget

torch = pytest.importorskip("torch", reason="pip install tilec[torch]")

from torch import nn  # noqa: E402
from torch._dynamo.utils import counters  # noqa: E402

from tilec.torch_backend import compiled_graph, recurrent  # noqa: E402
from tilec.torch_backend.exported_program import translated_program  # noqa: E402

pytestmark = pytest.mark.feature("B18")


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    torch.manual_seed(0)
    counters.clear()


class BothWays(nn.Module):
    """A layer both ways with the batch first and states given."""

    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(8, 6, bidirectional=True, batch_first=True)

    def forward(self, x, hidden, cell):
        steps, (hidden, cell) = self.lstm(x, (hidden, cell))
        return steps, hidden, cell


class Stacked(nn.Module):
    """Two layers without biases."""

    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(8, 5, num_layers=2, bias=False)

    def forward(self, x, hidden, cell):
        return self.gru(x)


def inputs(batch, length):
    return torch.randn(batch, length, 8), torch.randn(2, batch, 6), torch.randn(2, batch, 6)


def near(ours, theirs):
    for found, wanted in zip(ours, theirs, strict=True):
        torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("variant", "operators"), [(BothWays, ["LSTM"]), (Stacked, ["GRU", "GRU"])])
def test_layers_are_whole_and_of_any_length(tmp_path, monkeypatch, variant, operators):
    models, translate = [], compiled_graph.translate
    monkeypatch.setattr(compiled_graph, "translate", lambda *args: models.append(translate(*args)) or models[-1])
    module = variant().eval()
    captured = tilec.capture_rnn(copy.deepcopy(module))
    options = {"cache": str(tmp_path), "strict": True}
    run = torch.compile(captured, backend="tilec", fullgraph=True, dynamic=True, options=options)
    with torch.no_grad():
        for batch, length in ((3, 5), (4, 9), (5, 7)):
            given = inputs(batch, length)
            near(run(*given), module(*given))
    (made,) = models
    assert [each.op_type for each in made.model.graph.node if each.op_type in ("LSTM", "GRU")] == operators


def test_a_captured_model_is_the_model():
    module = nn.Sequential(nn.Linear(4, 4), nn.LSTM(4, 3, num_layers=2, dropout=0.5), nn.Identity())
    names = list(module.state_dict())
    original, captured = module[1], tilec.capture_rnn(module)
    assert captured is module
    assert isinstance(module[1], recurrent.Recurrence)
    assert list(module.state_dict()) == names
    assert module[1].hidden_size == 3
    assert module[1].weight_hh_l0 is original.weight_hh_l0
    module.double().load_state_dict({name: torch.ones_like(value) for name, value in module.state_dict().items()})
    assert original.weight_hh_l0.unique().tolist() == [1.0]
    assert original.weight_hh_l0.dtype == torch.float64
    module.eval()
    assert not original.training
    other = copy.deepcopy(module)
    assert other[1].weight_hh_l0 is other[1]._unlisted[0].weight_hh_l0
    assert isinstance(tilec.capture_rnn(nn.GRU(2, 3)), recurrent.Recurrence)
    assert isinstance(tilec.capture_rnn(nn.LSTM(4, 3, proj_size=2)), nn.LSTM)


def test_calls_are_those_of_the_original():
    """What is no plain inference goes to it: packed sequences, gradients, autocast, training."""
    module = nn.GRU(4, 3, bidirectional=True).eval()
    captured, x = tilec.capture_rnn(module), torch.randn(3, 2, 4)
    packed = nn.utils.rnn.pack_padded_sequence(x, torch.tensor([3, 2]))
    state = torch.randn(2, 2, 3)
    with torch.no_grad():
        near(captured(x, state), module(x, state))
        near(captured(x[:, 0], state[:, 0]), module(x[:, 0], state[:, 0]))
        near(captured(packed)[0][:1], module(packed)[0][:1])
        with torch.autocast("cpu", torch.bfloat16):
            assert captured(x)[0].dtype == module(x)[0].dtype
    captured(x)[0].sum().backward()
    assert module.weight_hh_l0.grad is not None


def test_a_warning_tells_once_of_modules_that_are_skipped():
    forget()
    module = nn.Sequential(nn.Linear(4, 4), nn.GRU(4, 3)).eval()
    with torch.no_grad(), warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        recurrent.tell_of_eager_recurrences()
        for _ in range(2):
            torch.compile(module, backend="tilec")(torch.randn(3, 2, 4))
    assert sum("model = tilec.capture_rnn(model)" in str(each.message) for each in told) == 1


def test_exported_programs_have_them(tmp_path):
    captured = tilec.capture_rnn(nn.LSTM(4, 3, num_layers=2).eval())
    sizes = ({0: torch.export.Dim("length"), 1: torch.export.Dim("batch")},)
    with torch.no_grad():
        program = torch.export.export(captured, (torch.randn(5, 2, 4),), dynamic_shapes=sizes)
        compiled = tilec.from_exported(program, cache=str(tmp_path))
        for shape in ((5, 2, 4), (9, 3, 4)):
            x = torch.randn(shape)
            steps, (hidden, cell) = compiled(x)
            theirs, (their_hidden, their_cell) = captured(x)
            near((steps, hidden, cell), (theirs, their_hidden, their_cell))


def test_programs_of_one_length_need_no_capture():
    module = nn.GRU(4, 3, batch_first=True).eval()
    x = torch.randn(2, 5, 4)
    program = torch.export.export(module, (x,))
    model = translated_program(program, "program", False).model
    assert "GRU" in {node.op_type for node in model.graph.node}
