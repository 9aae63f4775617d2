"""Single functions of torch, torch.nn.functional and tensors, each with inputs for a size."""

from torch_backend.functions import (
    arithmetic,
    attention,
    by_name,
    control,
    creation,
    decomposed,
    images,
    indices,
    losses,
    normalisations,
    order,
    products,
    reductions,
    shapes,
    spectra,
)
from torch_backend.functions.function import Function

__all__ = ["FUNCTIONS", "Function"]

_PARTS = (
    by_name, arithmetic, reductions, order, shapes, creation, indices, products, images, normalisations, attention,
    losses, spectra, control, decomposed,
)  # fmt: skip

FUNCTIONS = {name: function for part in _PARTS for name, function in part.FUNCTIONS.items()}
