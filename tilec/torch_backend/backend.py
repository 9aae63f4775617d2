"""The backend of `torch.compile`: graphs of PyTorch become models that tilec compiles (A02, B18).

AOTAutograd makes a graph functional and of core ATen operators; its symbols become sizes of one model. Parameters and
buffers are constants of the model. What has no translation stays in PyTorch.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import torch
from torch import fx
from torch._dynamo.backends.common import aot_autograd
from torch._dynamo.exc import TorchDynamoException, exceptions_allowed_to_be_fallback
from torch._functorch._aot_autograd.descriptors import PlainAOTInput, SubclassGetAttrAOTInput
from torch._functorch._aot_autograd.schemas import OutputType, ViewAndMutationMeta
from torch.utils._python_dispatch import _disable_current_modes

from tilec.api.compiling import compiler_started
from tilec.api.warn_once import warn_once
from tilec.errors import TilecError, UnsupportedError
from tilec.spec.source import HOST
from tilec.torch_backend import operators
from tilec.torch_backend.cards import card
from tilec.torch_backend.compiled_before import Note
from tilec.torch_backend.decompositions import decompositions
from tilec.torch_backend.options import Options, chosen_options
from tilec.torch_backend.partition import compiled_parts
from tilec.torch_backend.recurrent import tell_of_eager_recurrences
from tilec.torch_backend.refused_types import refusal
from tilec.torch_backend.rescue import boxed
from tilec.torch_backend.translation import UntranslatableError
from tilec.torch_backend.written_arguments import Functional, without_writes

assert operators.__all__  # translations are registered when they are imported

log = logging.getLogger("tilec")

tell_of_eager_recurrences()


def compile_graph(
    module: fx.GraphModule,
    example_inputs: Sequence[Any],
    *,
    mode: str | None = None,
    options: Mapping[str, Any] | None = None,
) -> Callable[..., Any]:
    """Compile one graph of Dynamo; `torch.compile(model, backend="tilec")` calls it.

    What cannot be compiled PyTorch runs, and says why, once: a graph that gradients flow through, tensors of other
    devices than the CPU, and whatever fails. With the option `strict` that is raised. Raises UsageError for options
    that there are not.
    """
    chosen = chosen_options(mode, options)
    try:
        return _compiled(module, example_inputs, chosen)
    except (TorchDynamoException, *exceptions_allowed_to_be_fallback):  # PyTorch breaks the graph there, and goes on
        raise
    except Exception as error:  # no call fails because of a compiler
        if chosen.strict and isinstance(error, _LeftError):
            raise error.strictly() from None
        if chosen.strict:
            raise
        log.info("a graph is left to PyTorch", exc_info=error)
        reason = error if isinstance(error, _LeftError) else f"tilec cannot compile it: {_said(error)}"
        warn_once(f"PyTorch runs a graph. {reason}")
        forward: Callable[..., Any] = module.forward
        return forward


class _LeftError(Exception):
    """A graph that is not for tilec: why, and what to do."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(f"{message}. {hint}")
        self._message, self._hint = message, hint

    def strictly(self) -> UnsupportedError:
        """The error of one who wants no graph left out."""
        return UnsupportedError(self._message, hint=self._hint)


def _said(error: Exception) -> str:
    return str(error) if isinstance(error, TilecError | UntranslatableError) else f"{type(error).__name__}: {error}"


def _compiled(module: fx.GraphModule, example_inputs: Sequence[Any], chosen: Options) -> Callable[..., Any]:
    """The graph, compiled. Raises whatever goes wrong."""
    on_card = _is_on_card(example_inputs)
    if refused := refusal(module):
        raise _LeftError(refused, hint="Convert its arguments to types that PyTorch takes")
    if on_card and chosen.device == HOST:
        chosen = replace(chosen, device=card())
    statics = {
        position: value
        for position, value in enumerate(example_inputs)
        if isinstance(value, torch.Tensor) and getattr(value, "_dynamo_static_input_type", None) and not on_card
    }
    compiled = functools.partial(_compile, statics=statics, options=chosen)
    note = Note(module, example_inputs, chosen)
    needless = note.there or chosen.is_eager or _has_gradients(example_inputs)
    with nullcontext() if needless else compiler_started(chosen.device):
        backend = aot_autograd(
            fw_compiler=_refuse,
            bw_compiler=_refuse,
            inference_compiler=compiled,
            decompositions=decompositions(),
            keep_inference_input_mutations=True,
        )
        made: Callable[..., Any] = backend(module, example_inputs)
    if not chosen.is_eager:
        note.keep()
    return made


def _is_on_card(inputs: Sequence[Any]) -> bool:
    """Whether the tensors of a graph lie on the first GPU, where parameters are arguments: kernels read them in place.
    Raises _LeftError for tensors of several devices, and of those that tilec does not run on."""
    devices = {str(value.device) for value in inputs if isinstance(value, torch.Tensor)}
    if devices <= {"cpu"} or devices == {"cuda:0"}:
        return devices == {"cuda:0"}
    raise _LeftError(
        f"Tensors of it are on {' and '.join(sorted(devices))}", hint="tilec runs graphs on the CPU or on the first GPU"
    )


def _has_gradients(inputs: Sequence[Any]) -> bool:
    """Whether a graph of these inputs may well be refused for the gradients that flow through it."""
    return torch.is_grad_enabled() and any(isinstance(each, torch.Tensor) and each.requires_grad for each in inputs)


def _compile(
    module: fx.GraphModule, _inputs: Sequence[Any], *, statics: Mapping[int, torch.Tensor], options: Options
) -> Callable[..., Any]:
    """One functional graph of core ATen operators."""
    if not any(node.op == "call_function" for node in module.graph.nodes):
        return boxed(module)
    context = torch._guards.TracingContext.try_get()
    metadata = context.fw_metadata if context is not None else None
    functional = without_writes(module, _passed(metadata))
    constants = _constants(functional, statics, metadata)
    with _disable_current_modes():  # parameters are real tensors, not those that tracing pretends
        return compiled_parts(functional, constants, options)


def _passed(metadata: ViewAndMutationMeta | None) -> dict[int, int]:
    """Results that AOTAutograd replaces by an argument, which they are: the positions of both."""
    if metadata is None:
        return {}
    results = enumerate(metadata.output_info, metadata.num_mutated_inp_runtime_indices)
    return {
        position: each.base_idx
        for position, each in results
        if each.output_type is OutputType.is_input and each.base_idx is not None
    }


def _constants(
    functional: Functional, statics: Mapping[int, torch.Tensor], metadata: ViewAndMutationMeta | None
) -> dict[int, torch.Tensor]:
    """Arguments of the functional graph that are parameters or buffers, and not written to; those of one number are
    arguments of what is compiled, too."""
    written = {*functional.written, *(metadata.mutated_inp_runtime_indices if metadata is not None else ())}
    found: dict[int, torch.Tensor] = {}
    for position, node in enumerate(n for n in functional.module.graph.nodes if n.op == "placeholder"):
        tensor = _static(node.meta.get("desc"), statics)
        if tensor is None or position in written or _is_number(tensor):
            continue
        if tensor.shape == node.meta["val"].shape:
            found[position] = tensor
    return found


def _is_number(tensor: torch.Tensor) -> bool:
    """Whether a tensor is a parameter of one number, which would stand in the code: training changes it."""
    return tensor.numel() == 1 and isinstance(tensor, torch.nn.Parameter) and tensor.is_floating_point()


def _static(source: Any, statics: Mapping[int, torch.Tensor]) -> torch.Tensor | None:
    """The parameter that an argument is, or a tensor of one of a class of its own, such as a quantised weight."""
    match source:
        case PlainAOTInput(idx=position):
            return statics.get(position)
        case SubclassGetAttrAOTInput(base=base, attr=name):
            whole = _static(base, statics)
            return None if whole is None else getattr(whole, name)
    return None


def _refuse(_module: fx.GraphModule, _inputs: Sequence[Any]) -> Callable[..., Any]:
    raise _LeftError(
        "Gradients flow through it, and tilec compiles inference only",
        hint="Call the model under torch.inference_mode() or torch.no_grad() to have it compiled",
    )
