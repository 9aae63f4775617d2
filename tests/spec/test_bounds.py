"""Recipes of kind bounds: forms, defaults, errors with places."""

import pytest

from tilec.errors import ConfigError
from tilec.spec.bounds import BoundsRecipe
from tilec.spec.located import parse_yaml, validate

EINSUM = "- {einsum: 'C[m,n] = sum(k, A[m,k]*B[k,n])', dims: {m: 4, n: 4, k: 4}, bits: {A: 8, B: 4, C: 32}}"
CHAIN = "- chain: [{name: a, m: 3, k: 2, n: 3}, {name: b, m: 3, k: 3, n: 1, rows: whole}]\n  bits: 16"


def recipe(text: str) -> BoundsRecipe:
    return validate(BoundsRecipe, parse_yaml(f"kind: bounds\nconvention: words\n{text}", "b.yaml"))


@pytest.mark.feature("O35")
def test_parts_are_einsums_or_chains() -> None:
    found = recipe(f"workload:\n{EINSUM}\n{CHAIN}\ncapacities: [1KiB, 2MB]")
    einsum, chain = found.workload
    assert (einsum.dims, einsum.bits, einsum.chain) == ({"m": 4, "n": 4, "k": 4}, {"A": 8, "B": 4, "C": 32}, None)
    assert chain.chain is not None
    assert [(each.name, each.heads, each.batches, each.rows) for each in chain.chain] == [
        ("a", 1, 1, "free"), ("b", 1, 1, "whole")
    ]  # fmt: skip
    assert (found.mapspace, found.fusion, found.cuts, found.scheme) == ("oro", "ffmt", True, 1)
    assert found.capacities == (1024, 2_000_000)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("workload: []", "b.yaml:3:11: expected at least 1, found []"),
        ("workload:\n- {bits: 8}", "b.yaml:4:3: a part is an einsum or a chain, one of the two"),
        (f"workload:\n{CHAIN}\n  dims: {{m: 3}}", "b.yaml:4:3: a chain has no dims, and one number of bits"),
        (f"workload:\n{CHAIN.replace('16', '{a: 16}')}", "b.yaml:4:3: a chain has no dims, and one number of bits"),
        (f"workload:\n{EINSUM.replace('bits', 'bit')}", "b.yaml:4:72: unknown key 'bit'\n  Did you mean 'bits'?"),
        (f"workload:\n{EINSUM.replace('m: 4', 'm: 0')}", "b.yaml:4:56: expected greater than 0, found 0"),
        (f"workload:\n{CHAIN.replace('k: 2', 'kk: 2')}", "b.yaml:4:27: unknown key 'kk'\n  Did you mean 'k'?"),
        (f"workload:\n{CHAIN.replace('whole', 'hole')}", "b.yaml:4:74: expected 'free', 'whole' or 'softmax'"),
        (f"workload:\n{CHAIN}\nscheme: 3", "b.yaml:6:9: expected 1, 2 or 'pipelined', found 3"),
        (f"workload:\n{CHAIN}\ncapacities: [40]", "b.yaml:6:14: 40 has no unit; write bytes as '164KiB'"),
        (f"workload:\n{CHAIN}\narea: {{die_mm2: 1}}", "b.yaml:6:7: key 'mac_um2' is missing"),
    ],
)
def test_errors_say_where(text: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        recipe(text)
    assert str(caught.value).startswith(message)


def test_what_is_counted_is_always_said() -> None:
    with pytest.raises(ConfigError, match="key 'convention' is missing"):
        validate(BoundsRecipe, parse_yaml(f"kind: bounds\nworkload:\n{EINSUM}", "b.yaml"))
