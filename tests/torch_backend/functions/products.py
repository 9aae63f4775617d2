"""Products and what is made of them."""

from __future__ import annotations

import torch
from torch.nn import functional as F  # noqa: N812

from torch_backend.functions.function import PAIR, REAL, Function, normal, tensors

FUNCTIONS: dict[str, Function] = {
    "mm": Function(torch.mm, tensors(("n", 6), (6, 5)), REAL),
    "mm of integers": Function(torch.mm, tensors(("n", 6), (6, 5)), (torch.int64,)),
    "bmm": Function(torch.bmm, tensors((2, "n", 6), (2, 6, 5)), REAL),
    "matmul broadcast": Function(torch.matmul, tensors((2, 1, "n", 6), (3, 6, 5))),
    "matmul of vectors": Function(lambda x, y: (x @ y, y @ x.t()), tensors(("n", 6), (6,))),
    "dot": Function(torch.dot, tensors(("n",), ("n",)), REAL),
    "mv": Function(torch.mv, tensors(("n", 6), (6,)), REAL),
    "addmm": Function(lambda c, a, b: torch.addmm(c, a, b, beta=0.5, alpha=2), tensors((5,), ("n", 6), (6, 5)), REAL),
    "addmm of integers": Function(
        lambda c, a, b: torch.addmm(c, a, b, beta=2, alpha=3), tensors((5,), ("n", 6), (6, 5)), (torch.int64,)
    ),
    "addbmm": Function(torch.addbmm, tensors(("n", 5), (2, "n", 6), (2, 6, 5))),
    "addmv": Function(lambda c, a, b: torch.addmv(c, a, b, beta=0), tensors(("n",), ("n", 6), (6,))),
    "addr": Function(torch.addr, tensors(("n", 5), ("n",), (5,))),
    "baddbmm": Function(
        lambda c, a, b: torch.baddbmm(c, a, b, beta=0, alpha=0.5), tensors((2, "n", 5), (2, "n", 6), (2, 6, 5))
    ),
    "chain of products": Function(lambda a, b, c: torch.linalg.multi_dot([a, b, c]), tensors(("n", 6), (6, 5), (5, 2))),
    "einsum": Function(lambda x, y: torch.einsum("bnd,bmd->bnm", x, y), tensors((2, "n", 6), (2, 4, 6)), REAL),
    "tensordot": Function(lambda x, y: torch.tensordot(x, y, 2), tensors((3, "n", 6), ("n", 6, 2))),
    "linear": Function(F.linear, tensors((2, "n", 6), (5, 6), (5,)), REAL),
    "bilinear": Function(F.bilinear, tensors(("n", 6), ("n", 5), (3, 6, 5), (3,))),
    "cross": Function(lambda x, y: torch.linalg.cross(x, y), tensors(("n", 3), ("n", 3))),
    "vecdot": Function(torch.linalg.vecdot, PAIR),
    "cov": Function(torch.cov, normal(4, "n")),
    "corrcoef": Function(torch.corrcoef, normal(4, "n")),
    "det": Function(torch.linalg.det, normal("n", 3, 3)),
    "slogdet": Function(torch.linalg.slogdet, normal("n", 3, 3)),
    "inv": Function(torch.linalg.inv, normal("n", 3, 3)),
    "solve": Function(torch.linalg.solve, tensors(("n", 3, 3), ("n", 3, 2))),
    "cholesky": Function(lambda x: torch.linalg.cholesky(x @ x.mT + torch.eye(3)), normal("n", 3, 3)),
    "svdvals": Function(torch.linalg.svdvals, normal("n", 3, 3)),
    "eigvalsh": Function(lambda x: torch.linalg.eigvalsh(x + x.mT), normal("n", 3, 3)),
    "pinv": Function(torch.linalg.pinv, normal("n", 3, 3)),
    "matrix_power": Function(lambda x: torch.linalg.matrix_power(x, 3), normal("n", 3, 3)),
    "matrix_exp": Function(torch.linalg.matrix_exp, normal("n", 3, 3)),
}
