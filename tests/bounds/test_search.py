from __future__ import annotations

import pytest

from bounds import walk
from tilec.bounds import search
from tilec.bounds.einsum import parse_einsum
from tilec.bounds.oro import divisors
from tilec.bounds.search import count_mappings, pareto


def test_tilings_in_chunks_give_the_same_front(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "O[p,q,k] = sum(r,s,c, I[p+r,q+s,c] * W[r,s,c,k])"
    einsum = parse_einsum(text, {"p": 6, "q": 4, "k": 4, "r": 3, "s": 2, "c": 4})
    candidates = {dim: divisors(extent) for dim, extent in einsum.extents.items()}
    whole = [(p.buffer_bytes, p.accesses) for p in pareto(einsum, [candidates], False)]
    monkeypatch.setattr(search, "_CHUNK", 7)
    assert [(p.buffer_bytes, p.accesses) for p in pareto(einsum, [candidates], False)] == whole


@pytest.mark.feature("O03")
def test_number_of_mappings() -> None:
    assert count_mappings([13, 13, 13]) == 11_269  # the valid mappings of the 4k GEMM
    for seed in range(7):
        einsum = walk.random_einsum(seed)
        sizes = [len(divisors(extent)) for extent in einsum.extents.values()]
        assert count_mappings(sizes) == len(list(walk.mappings(einsum, walk.perfect)))
