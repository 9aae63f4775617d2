"""What tilec offers to users of PyTorch, which is imported when it is called."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from tilec.errors import UnavailableError
from tilec.extras import install

if TYPE_CHECKING:
    from torch import nn
    from torch.export import ExportedProgram

    from tilec.torch_backend.exported_model import ExportedModel


def from_exported(
    program: ExportedProgram,
    *,
    device: str = "host",
    recipe: str | None = None,
    threads: int | None = None,
    specialize: Literal["off", "likely"] | None = None,
    cache: str | None = None,
) -> ExportedModel:
    """A program of `torch.export`, to be called like the program; it is compiled at the first call, for all sizes that
    the program allows.

    `device` and `recipe` are names or files as on the command line, `threads` those of a run (None: PyTorch's number),
    `specialize` and `cache` as in `InferenceSession`. Raises UnsupportedError that names operators without translation,
    UnavailableError where PyTorch is not installed.
    """
    from_program = _of("exported_model").from_exported
    model: ExportedModel = from_program(
        program, device=device, recipe=recipe, threads=threads, specialize=specialize, cache=cache
    )
    return model


def capture_rnn(model: nn.Module) -> nn.Module:
    """The model, whose LSTM and GRU modules `torch.compile` and `torch.export` then see as one operator each, of any
    length. Their parameters stay where they are, under their names; the modules are replaced in the model itself.

    In training, under autocast and for packed sequences the modules work as before; those with `proj_size` stay.
    Raises UnavailableError where PyTorch is not installed.
    """
    captured: nn.Module = _of("recurrent").capture_rnn(model)
    return captured


def refit(model: nn.Module | None = None) -> None:
    """Have the weights of a compiled model (None: of all) read again in its next call, after writes that nothing sees:
    see `weights` among the options of backend tilec. Raises UnavailableError where PyTorch is not installed."""
    _of("compiled_graph").refit(model)


def _of(module: str) -> Any:
    """A module of the backend of torch.compile."""
    import importlib

    try:
        return importlib.import_module(f"tilec.torch_backend.{module}")
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise UnavailableError("PyTorch is not installed", hint=f"Run `{install('torch')}`.") from error
