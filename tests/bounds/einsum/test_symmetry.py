from __future__ import annotations

import pytest

from tilec.bounds.einsum.einsum import parse_einsum
from tilec.bounds.einsum.oro_plus import SPACE, oro_plus, tile_sizes
from tilec.bounds.einsum.search import pareto
from tilec.bounds.einsum.symmetry import mirrored_pair

GEMM = "C[m,n] = sum(k, A[m,k] * B[k,n])"
CONVOLUTION = "O[k,p,q] = sum(c,r,s, I[c,2*p+r,2*q+s] * W[k,c,r,s])"


@pytest.mark.parametrize(
    ("text", "dims", "bits", "pair"),
    [
        (GEMM, "m=60,n=60,k=60", {}, ("m", "n")),
        (GEMM, "m=60,n=60,k=7", {}, ("m", "n")),
        (GEMM, "m=60,n=59,k=60", {}, None),
        (GEMM, "m=60,n=60,k=60", {"A": 8}, None),
        (GEMM, "m=1,n=1,k=60", {}, None),
        ("C[m,n] = sum(k, A[m,k] * A[n,k])", "m=9,n=9,k=60", {}, ("m", "n")),
        ("C[m,n] = sum(k, A[m,k] * B[k,2*n])", "m=9,n=9,k=9", {}, None),
        (CONVOLUTION, "k=5,p=9,q=9,c=5,r=3,s=3", {}, ("p", "q")),
        (CONVOLUTION, "k=5,p=9,q=9,c=4,r=3,s=1", {}, None),
        ("Y[i] = X[i]", "i=4", {}, None),
        ("C[a,b,c,d] = sum(k, A[a,b,k] * B[k,c,d])", "a=6,b=5,c=6,d=5,k=4", {}, ("a", "c")),
    ],
)
def test_iterators_that_can_change_places(
    text: str, dims: str, bits: dict[str, int], pair: tuple[str, str] | None
) -> None:
    extents = {name: int(n) for name, n in (each.split("=") for each in dims.split(","))}
    widths = {tensor: bits.get(tensor, 16) for tensor in "ABCIOWXY"}
    assert mirrored_pair(parse_einsum(text, extents, widths)) == pair


@pytest.mark.parametrize(
    ("text", "extents"),
    [
        (GEMM, {"m": 48, "n": 48, "k": 30}),
        (CONVOLUTION, {"k": 5, "p": 7, "q": 7, "c": 4, "r": 3, "s": 3}),
    ],
)
def test_one_of_two_mirror_images_is_enough(text: str, extents: dict[str, int]) -> None:
    einsum = parse_einsum(text, extents)
    sizes = {dim: tile_sizes(extent) for dim, extent in einsum.extents.items()}
    tried = pareto(einsum, sizes, SPACE)
    assert [(p.buffer_bytes, p.traffic_bytes) for p in oro_plus(einsum).points] == [
        (p.buffer_bytes, p.traffic_bytes) for p in tried
    ]
