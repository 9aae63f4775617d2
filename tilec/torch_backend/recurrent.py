"""LSTM and GRU modules as operators that stay whole: PyTorch compiles none, or unrolls them for one length (A02)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import torch
from torch import nn
from torch._dynamo.callback import CallbackArgs, callback_handler
from torch._dynamo.utils import counters
from torch.nn.utils.rnn import PackedSequence

from tilec.api.warn_once import warn_once

Module = TypeVar("Module", bound=nn.Module)

_SCHEMA = "(Tensor x, Tensor[] state, Tensor[] weights, bool biases, int layers, bool both, bool first) -> "
"""`state` is that before the first step, `both` says whether layers run both ways, `first` that the batch stands first.
Results are all steps, and the state after the last one."""


def _lstm(
    x: torch.Tensor, state: Sequence[torch.Tensor], weights: Sequence[torch.Tensor], *form: Any
) -> tuple[torch.Tensor, ...]:
    biases, layers, both, first = form
    made: tuple[torch.Tensor, ...] = torch.lstm(x, state, weights, biases, layers, 0.0, False, both, first)
    return made


def _gru(
    x: torch.Tensor, state: Sequence[torch.Tensor], weights: Sequence[torch.Tensor], *form: Any
) -> tuple[torch.Tensor, ...]:
    biases, layers, both, first = form
    made: tuple[torch.Tensor, ...] = torch.gru(x, state[0], weights, biases, layers, 0.0, False, both, first)
    return made


def _shaped(
    x: torch.Tensor, state: Sequence[torch.Tensor], _weights: Sequence[torch.Tensor], *form: Any
) -> tuple[torch.Tensor, ...]:
    """Tensors of the shapes and strides of the results."""
    _biases, _layers, both, first = form
    batch, length = (x.shape[0], x.shape[1]) if first else (x.shape[1], x.shape[0])
    steps = x.new_empty(length, batch, state[0].shape[2] * (2 if both else 1))
    return (steps.transpose(0, 1) if first else steps, *(each.new_empty(each.shape) for each in state))


for _name, _function, _results in (("lstm", _lstm, "(Tensor, Tensor, Tensor)"), ("gru", _gru, "(Tensor, Tensor)")):
    torch.library.custom_op(f"tilec::{_name}", _function, mutates_args=(), schema=_SCHEMA + _results).register_fake(
        _shaped
    )

lstm, gru = torch.ops.tilec.lstm.default, torch.ops.tilec.gru.default


class Recurrence(nn.Module):
    """A module in the place of an LSTM or GRU, with its parameters under their names. In inference its call is one
    operator; sequences that are packed, training and autocast are left to the original."""

    def __init__(self, original: nn.LSTM | nn.GRU) -> None:
        super().__init__()
        for name, parameter in original.named_parameters(recurse=False):
            self.register_parameter(name, parameter)
        self._unlisted = (original,)  # no child: it has the same parameters
        self._operator = lstm if isinstance(original, nn.LSTM) else gru
        self._names = [name for names in original._all_weights for name in names]
        self._form = (original.bias, original.num_layers, original.bidirectional, original.batch_first)
        self._width = original.hidden_size
        self.train(original.training)

    def __getattr__(self, name: str) -> Any:
        """What the original says of itself: its sizes, `batch_first`, `flatten_parameters`."""
        try:
            return super().__getattr__(name)
        except AttributeError:
            if "_unlisted" not in self.__dict__:
                raise
            return getattr(self._unlisted[0], name)

    def train(self, mode: bool = True) -> Recurrence:
        """The original follows."""
        self._unlisted[0].train(mode)
        super().train(mode)
        return self

    def forward(self, x: Any, state: Any = None) -> Any:
        """As the original's, which Dynamo must not see where it is not called."""
        if isinstance(x, PackedSequence) or self.training or torch.is_grad_enabled() or _autocast():
            return self._unlisted[0](x, state)
        _biases, _layers, _both, first = self._form
        single = x.dim() == 2
        if single:  # one sequence, without a batch
            x = x.unsqueeze(0 if first else 1)
        weights = [getattr(self, name) for name in self._names]
        steps, *after = self._operator(x, self._states(x, state, single), weights, *self._form)
        if single:
            steps, after = steps.squeeze(0 if first else 1), [each.squeeze(1) for each in after]
        return steps, (tuple(after) if len(after) > 1 else after[0])

    def _states(self, x: torch.Tensor, state: Any, single: bool) -> list[torch.Tensor]:
        """The states before the first step, which are zeros where none are given."""
        _biases, layers, both, first = self._form
        count = 2 if self._operator is lstm else 1
        if state is None:
            zeros = x.new_zeros(layers * (2 if both else 1), x.shape[0 if first else 1], self._width)
            return [zeros] * count
        given = list(state) if count == 2 else [state]
        return [each.unsqueeze(1) for each in given] if single else given


def capture_rnn(model: Module) -> Module | Recurrence:
    """Put operators in the place of a model's LSTM and GRU modules, see `tilec.capture_rnn`."""
    if _is_captured(model):
        return Recurrence(model)
    for parent in list(model.modules()):
        for name, child in list(parent.named_children()):
            if _is_captured(child):
                setattr(parent, name, Recurrence(child))
    return model


def _is_captured(module: nn.Module) -> bool:
    """Whether there is an operator for a module: those that project their state have none."""
    return type(module) in (nn.LSTM, nn.GRU) and not module.proj_size


def _autocast() -> bool:
    found: bool = torch.is_autocast_enabled("cpu")
    return found


def tell_of_eager_recurrences() -> None:
    """Let a warning say once that PyTorch runs a model because of its recurrent modules."""
    callback_handler.register_end_callback(_look)


def _look(_arguments: CallbackArgs) -> None:
    reasons = [*counters["unimplemented"], *counters["graph_break"]]
    if any("RNN, GRU, or LSTM" in reason for reason in reasons):
        warn_once(
            "torch.compile leaves nn.LSTM and nn.GRU to PyTorch, with the functions that call them: "
            "model = tilec.capture_rnn(model) before it lets them be compiled"
        )
