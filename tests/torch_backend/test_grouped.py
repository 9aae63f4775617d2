"""Rows in groups, beside PyTorch: products, counts, bags, means."""

import math

import pytest

torch = pytest.importorskip("torch", reason="pip install tilec[torch]")

from torch.nn import functional  # noqa: E402


@pytest.fixture(scope="module")
def grouped_mm():
    """An operator as packages define it, which tilec knows by its name."""
    library = torch.library.Library("transformers", "FRAGMENT")
    library.define("grouped_mm_fallback(Tensor input, Tensor weight, Tensor offs) -> Tensor")

    def product(rows, weights, offs):
        made, first = rows.new_zeros(len(rows), weights.shape[2]), 0
        for number, last in enumerate(offs.tolist()):
            made[first:last] = rows[first:last] @ weights[number]
            first = last
        return made

    library.impl("grouped_mm_fallback", product, "CPU")
    torch.library.register_fake(
        "transformers::grouped_mm_fallback", lambda rows, weights, _: rows.new_empty(len(rows), weights.shape[2])
    )
    yield torch.ops.transformers.grouped_mm_fallback
    library._destroy()


@pytest.mark.parametrize(
    ("rows", "ends"),
    [
        (13, [(2, 2, 7, 9, 13), (0, 0, 0, 0, 13)]),
        (13, [(1, 2, 3, 4, 5), (13, 13, 13, 13, 13)]),
        (4, [(0, 1, 1, 2, 3), (0, 0, 0, 4, 4)]),
    ],
    ids=["blocks", "rows behind the last group", "one row at a time"],
)
def test_products_by_groups(rows, ends, grouped_mm, native):
    weights = torch.randn(5, 6, 7)
    inputs = [(torch.randn(rows, 6), torch.tensor(each, dtype=torch.int32)) for each in ends]
    native(lambda x, offs: grouped_mm(x, weights.to(x.dtype), offs) * 2, *inputs)


@pytest.mark.slow
def test_products_by_groups_of_an_open_number_of_rows(grouped_mm, native):
    weights = torch.randn(5, 6, 7)
    ends = {13: (2, 2, 7, 9, 13), 30: (9, 10, 11, 29, 29), 3: (0, 1, 2, 3, 3)}
    inputs = [(torch.randn(rows, 6), torch.tensor(each)) for rows, each in ends.items()]
    native(lambda x, offs: grouped_mm(x, weights.to(x.dtype), offs) * 2, *inputs, varies=True)


def test_counts_in_bins(native):
    odd = torch.tensor([math.nan, math.inf, -math.inf, -2, 2, 1.99, -1.2, 0.4, 5, 0])
    native(lambda x: torch.histc(x, 5, -2, 2), (odd,), (torch.randn(10),))


def test_bags_of_one_length_and_of_several(native):
    table = torch.randn(6, 3)

    def bags(indices, flat, offsets):
        same = [functional.embedding_bag(indices, table, mode=mode) for mode in ("sum", "mean", "max")]
        return same + [
            functional.embedding_bag(flat, table, offsets, mode=mode, padding_idx=2) for mode in ("sum", "mean", "max")
        ]

    flat = torch.tensor([2, 1, 0, 3, 4, 5, 1, 2, 2])
    inputs = [(torch.randint(6, (4, 3)), flat, torch.tensor(each)) for each in ((0, 3, 3, 8), (0, 0, 9, 9))]
    native(bags, *inputs)


def test_means_of_what_is_written_to_a_place(native):
    def means(x, places, values, whole):
        return [x.scatter_reduce(0, places, values, "mean", include_self=each) for each in (True, False)] + [
            whole.scatter_reduce(0, places, (values * 4).long(), "mean", include_self=each) for each in (True, False)
        ]

    places = torch.tensor([[0, 0, 1], [0, 2, 4], [0, 2, 1]])
    native(means, (torch.randn(5, 3), places, torch.randn(4, 3), torch.arange(15).view(5, 3) - 7))
