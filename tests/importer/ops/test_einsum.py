"""Einsum against onnxruntime and NumPy: every form of equation, what is summed when, types."""

from pathlib import Path

import numpy as np
import pytest

from tests.importer.reference import check, normal, run, single
from tilec.errors import ConfigError
from tilec.importer import import_model
from tilec.ir.text import tensor_text

EQUATIONS: list[tuple[str, list[tuple[int, ...]]]] = [
    ("ij,jk->ik", [(3, 4), (4, 5)]),
    ("bhqd,bhkd->bhqk", [(2, 3, 4, 5), (2, 3, 6, 5)]),
    ("ij,jk", [(3, 4), (4, 5)]),
    ("ji", [(3, 4)]),
    ("i,i", [(3,), (3,)]),
    ("iJ , Jk -> ki", [(3, 4), (4, 5)]),
    ("...ij,...jk->...ik", [(2, 1, 3, 4), (5, 4, 2)]),
    ("ij...->...", [(2, 3, 4)]),
    ("ij...->...ji", [(2, 3, 4, 5)]),
    ("...", [(2, 3)]),
    ("...i,...i->...", [(2, 4), (4,)]),
    ("b...c,...cd->b...d", [(2, 3, 4), (3, 4, 5)]),
    ("ii->i", [(4, 4)]),
    ("ii", [(4, 4)]),
    ("iij->ij", [(3, 3, 4)]),
    ("ijii->j", [(3, 4, 3, 3)]),
    ("ij->", [(3, 4)]),
    ("i,j->ij", [(3,), (4,)]),
    (",ij->ij", [(), (3, 4)]),
    (",->", [(), ()]),
    ("ij,ij->i", [(3, 1), (3, 4)]),
    ("ij,jk->ik", [(0, 4), (4, 5)]),
    ("ij,jk->ik", [(3, 0), (0, 5)]),
    ("ij,k->i", [(3, 4), (5,)]),
    ("a,b,c->abc", [(2,), (3,), (4,)]),
    ("ij,jk,kl->il", [(2, 3), (3, 4), (4, 5)]),
    ("ij,jk,kl,l->i", [(2, 3), (3, 4), (4, 5), (5,)]),
    ("ia,ib,ic->i", [(2, 3), (2, 4), (2, 5)]),
    ("ii,ij,jj->j", [(3, 3), (3, 4), (4, 4)]),
]


REFUSED = {"...ij,...jk->...ik", "...i,...i->..."}
"""The reference does not broadcast ellipses of different ranks."""


@pytest.mark.parametrize(("equation", "shapes"), [e for e in EQUATIONS if e[0] not in REFUSED])
def test_einsum(tmp_path: Path, equation: str, shapes: list[tuple[int, ...]]) -> None:
    check(tmp_path, "Einsum", *(normal(*s, seed=i) for i, s in enumerate(shapes)), equation=equation, atol=1e-5)


@pytest.mark.parametrize(("equation", "shapes"), [e for e in EQUATIONS if "," in e[0]])
@pytest.mark.parametrize("dtype", ["int64", "float64"])
def test_other_types(tmp_path: Path, equation: str, shapes: list[tuple[int, ...]], dtype: str) -> None:
    arrays = [np.asarray(3 * normal(*s, seed=i)).astype(dtype) for i, s in enumerate(shapes)]
    path, feeds = single(tmp_path, "Einsum", *arrays, equation=equation)
    (found,) = run(import_model(path), tmp_path, feeds)
    assert found.dtype == dtype
    np.testing.assert_allclose(found, np.einsum(equation, *arrays), rtol=1e-12, atol=1e-12)


def test_operands_are_multiplied_two_at_a_time(tmp_path: Path) -> None:
    arrays = normal(2, 3), normal(3, 4), normal(4, 5)
    path, _ = single(tmp_path, "Einsum", *arrays, equation="ij,jk,kl->il")
    assert [tensor_text(node.expr) for node in import_model(path).graph.nodes] == [
        "y0_product1[i, k] = sum(j, x0[i, j] * x1[j, k])",
        "y0[i, l] = sum(k, y0_product1[i, k] * x2[k, l])",
    ]


def test_what_one_operand_has_alone_is_summed_first(tmp_path: Path) -> None:
    path, _ = single(tmp_path, "Einsum", normal(3, 4), normal(5), equation="ij,k->i")
    assert [tensor_text(node.expr) for node in import_model(path).graph.nodes] == [
        "y0_operand0[i] = sum(j, x0[i, j])",
        "y0_operand1[()] = sum(k, x1[k])",
        "y0[i] = y0_operand0[i] * y0_operand1[()]",
    ]


@pytest.mark.parametrize(
    ("equation", "message"),
    [
        ("ijk->i", "does not fit the ranks"),
        ("i1->i", "indices that are no letters"),
        ("ij->iz", "an index that no operand has"),
        ("ij->ii", "or one twice"),
        ("ii->i", "index i of 'ii->i': 3 and 4 differ"),
    ],
)
def test_equations_that_do_not_fit(tmp_path: Path, equation: str, message: str) -> None:
    path, _ = single(tmp_path, "Einsum", normal(3, 4), equation=equation)
    with pytest.raises(ConfigError, match=message):
        import_model(path)
