"""Calls that eager PyTorch refuses for the types of whole numbers and truth values that they take.

What PyTorch's compilers trace takes more: an index of int32 is one to the rules of decomposition where the kernel wants
int64. Such a call is tried on small tensors: it is refused where it fails on those, and not on such of a usual type.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import fx
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._python_dispatch import _disable_current_modes

SMALL = 8
"""Extents up to this one are as they are; larger ones become the next numbers, in their order."""

MODULES = (
    None, "_operator", "torch", "torch._C._fft", "torch._C._linalg", "torch._C._nn", "torch._C._special",
    "torch.functional", "torch.nn.functional", "torch._ops.aten",
)  # fmt: skip
"""Where functions are from that do nothing but compute."""

WHOLE = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)

USUAL: tuple[Mapping[torch.dtype, torch.dtype], ...] = (
    dict.fromkeys(WHOLE, torch.int64),
    dict.fromkeys((*WHOLE, torch.bool), torch.int64),
    dict.fromkeys((*WHOLE, torch.bool), torch.float32),
)
"""Types that others are replaced by, one set after the other."""


def refusal(module: fx.GraphModule) -> str:
    """What eager PyTorch refuses of a graph of Dynamo, or of one inside of it, and its error; "" for nothing."""
    graphs = [each.graph for each in module.modules() if isinstance(each, fx.GraphModule)]
    nodes = [node for graph in graphs for node in graph.nodes if _is_tried(node)]
    if not nodes:
        return ""
    with _disable_current_modes(), torch.no_grad(), torch.random.fork_rng(devices=[]), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return next(filter(None, map(_refusal, nodes)), "")


def _is_tried(node: fx.Node) -> bool:
    """Whether a call only computes, and takes whole numbers or truth values on the CPU."""
    if node.op == "call_function":
        if getattr(node.target, "__module__", None) not in MODULES:
            return False
    elif node.op != "call_method":
        return False
    values = [each.meta.get("example_value") for each in node.all_input_nodes]
    tensors = [each for each in values if isinstance(each, torch.Tensor)]
    return all(map(_is_plain, tensors)) and any(each.dtype in USUAL[-1] for each in tensors)


def _is_plain(tensor: torch.Tensor) -> bool:
    return type(tensor) is FakeTensor and tensor.device.type == "cpu" and tensor.layout == torch.strided


def _refusal(node: fx.Node) -> str:
    """The error of one call, "" where it has none, or as well with usual types."""
    error = _fails(node, {})
    if not error or all(_fails(node, usual) for usual in USUAL):
        return ""
    name = getattr(node.target, "__name__", node.target)
    return f"Eager PyTorch fails at {name} of these types ({' '.join(error.split())})"


def _fails(node: fx.Node, types: Mapping[torch.dtype, torch.dtype]) -> str:
    """The error of a call with other types, of tensors of ones and of zeros; "" where it has none with either."""
    error = ""
    for fill in (torch.ones, torch.zeros):
        try:
            _tried(node, types, fill)
        except Exception as fault:
            error = str(fault) or type(fault).__name__
        else:
            return ""
    return error


def _tried(node: fx.Node, types: Mapping[torch.dtype, torch.dtype], fill: Callable[..., torch.Tensor]) -> None:
    extents = _small_extents(node)

    def value(argument: fx.Node) -> Any:
        meant = argument.meta["example_value"]
        if isinstance(meant, torch.Tensor):
            return fill([extents[_number(each)] for each in meant.shape], dtype=types.get(meant.dtype, meant.dtype))
        return _number(meant) if isinstance(meant, torch.SymInt | torch.SymFloat | torch.SymBool) else meant

    args, kwargs = fx.node.map_arg((node.args, dict(node.kwargs)), value)
    if node.op == "call_method":
        getattr(args[0], str(node.target))(*args[1:], **kwargs)
    else:
        assert callable(node.target)
        node.target(*args, **kwargs)


def _small_extents(node: fx.Node) -> dict[int, int]:
    """Small extents in the place of those of the tensors of a call: different ones stay different."""
    values = [each.meta["example_value"] for each in node.all_input_nodes]
    found = sorted({_number(each) for value in values if isinstance(value, torch.Tensor) for each in value.shape})
    large = [each for each in found if each > SMALL]
    return {each: each for each in found} | {each: SMALL + 1 + n for n, each in enumerate(large)}


def _number(size: Any) -> Any:
    """What a size is in the call that is traced, without saying that it always is."""
    return size if isinstance(size, int) else size.node.hint
