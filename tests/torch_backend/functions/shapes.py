"""Functions that move elements."""

from __future__ import annotations

import torch
from torch.nn import functional as F  # noqa: N812

from torch_backend.functions.function import ANY, IMAGES, MATRIX, PAIR, REAL, ROWS, VECTOR, Function, normal, tensors

FUNCTIONS: dict[str, Function] = {
    "reshape": Function(lambda x: x.reshape(x.shape[0], -1, 2), MATRIX, ANY),
    "view of another type": Function(lambda x: x.view(torch.int32), MATRIX),
    "flatten": Function(lambda x: x.flatten(1), ROWS, ANY),
    "unflatten": Function(lambda x: x.unflatten(1, (2, 3)), MATRIX),
    "permute": Function(lambda x: x.permute(2, 0, 1).contiguous(), ROWS, ANY),
    "transpose": Function(lambda x: x.transpose(0, -1) + 1, ROWS),
    "movedim": Function(lambda x: x.movedim(0, 2) * 2, ROWS),
    "squeeze and unsqueeze": Function(lambda x: x[:, None].squeeze().unsqueeze(-1), MATRIX, ANY),
    "expand": Function(lambda x: x[:, None].expand(-1, 3, -1) + 1, MATRIX),
    "expand_as": Function(lambda x: x[:1].expand_as(x) + x, MATRIX),
    "broadcast_to": Function(lambda x: torch.broadcast_to(x, (2, *x.shape)) * 2, MATRIX),
    "repeat": Function(lambda x: x.repeat(2, 1, 3), MATRIX, ANY),
    "tile": Function(lambda x: torch.tile(x, (2,)), MATRIX),
    "repeat_interleave": Function(lambda x: x.repeat_interleave(3, 0), MATRIX, ANY),
    "repeat_interleave by a tensor": Function(
        lambda x: x.repeat_interleave(torch.tensor([1, 2, 0, 3, 1, 1]), 1), MATRIX
    ),
    "cat": Function(lambda x, y: torch.cat([x, y, x], 1), PAIR, ANY),
    "cat of types": Function(lambda x: torch.cat([x, x.int(), x.half()], 0), MATRIX),
    "cat with nothing": Function(lambda x: torch.cat([torch.empty(0), x], 0), MATRIX),
    "stack": Function(lambda x, y: torch.stack([x, y], -1), PAIR, ANY),
    "hstack": Function(lambda x, y: torch.hstack([x, y]), PAIR),
    "vstack": Function(lambda x, y: torch.vstack([x, y]), PAIR),
    "dstack": Function(lambda x, y: torch.dstack([x, y]), PAIR),
    "column_stack": Function(lambda x, y: torch.column_stack([x, y[:, 0]]), PAIR),
    "block_diag": Function(lambda x, y: torch.block_diag(x, y), PAIR),
    "split": Function(lambda x: [y + 1 for y in x.split(4, 1)], MATRIX),
    "split by sizes": Function(lambda x: [y * 2 for y in x.split([1, 3, 2], 1)], MATRIX, ANY),
    "chunk": Function(lambda x: [y * 2 for y in x.chunk(4, 1)], MATRIX),
    "tensor_split": Function(lambda x: [y * 2 for y in torch.tensor_split(x, 4, 1)], MATRIX),
    "unbind": Function(lambda x: [y * 2 for y in x.unbind(1)], MATRIX),
    "narrow": Function(lambda x: x.narrow(1, 2, 3) * 2, MATRIX),
    "select": Function(lambda x: x.select(1, -2) * 2, ROWS),
    "slices": Function(lambda x: (x[1:-1, ::2] * 2, x[..., -3:] + 1, x[:, 4:2] + 1, x[-99:99] * 3), MATRIX),
    "flip": Function(lambda x: x.flip(0, 2), ROWS, ANY),
    "rot90": Function(lambda x: torch.rot90(x, 1, (0, 1)), MATRIX),
    "roll": Function(lambda x: x.roll((2, -1), (0, 1)), MATRIX, ANY),
    "roll over all": Function(lambda x: x.roll(-3), MATRIX),
    "diagonal": Function(lambda x: x.diagonal(0, -1, -2) * 2, normal("n", 5, 6)),
    "diagonal offset": Function(lambda x: (x.diagonal(1) * 2, x.diagonal(-2) + 1), normal(5, 6), fixed=True),
    "diag": Function(torch.diag, VECTOR),
    "diag of a matrix": Function(torch.diag, MATRIX),
    "diag_embed": Function(lambda x: torch.diag_embed(x, 1), MATRIX),
    "trace": Function(torch.trace, MATRIX),
    "tril and triu": Function(lambda x: (x.tril(1), x.triu(-1)), ROWS, ANY),
    "tril_indices": Function(lambda x: x[torch.tril_indices(4, 4).unbind()], normal(4, 4), fixed=True),
    "unfold of a dimension": Function(lambda x: x.unfold(1, 3, 2) * 2, ROWS),
    "as_strided": Function(lambda x: torch.as_strided(x, (3, 2), (2, 1)) * 2, normal(6, 6), fixed=True),
    "meshgrid": Function(lambda x, y: torch.meshgrid(x, y, indexing="ij"), tensors(("n",), (4,))),
    "cartesian_prod": Function(torch.cartesian_prod, tensors(("n",), (4,))),
    "combinations": Function(torch.combinations, normal(5), fixed=True),
    "channel_shuffle": Function(lambda x: F.channel_shuffle(x, 2), IMAGES),
    "pixel_shuffle": Function(lambda x: F.pixel_shuffle(x, 2), IMAGES, REAL),
    "pixel_unshuffle": Function(lambda x: F.pixel_unshuffle(x, 3), normal(2, 2, 9, 6), fixed=True),
    "atleast_3d": Function(lambda x: torch.atleast_3d(x) + 1, MATRIX),
    "kron": Function(torch.kron, tensors(("n", 2), (2, 3))),
    "outer": Function(torch.outer, tensors(("n",), (4,)), REAL),
    "view_as": Function(lambda x: x.t().contiguous().view_as(x), MATRIX),
}
