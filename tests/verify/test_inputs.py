"""Random inputs: the same for a seed, and legal for what the model does with them."""

from dataclasses import replace

import numpy as np
import pytest

from tilec.errors import UnsupportedError
from tilec.ir.bind_plan import bind_plan
from tilec.ir.expr import Const, Var
from tilec.ir.graph import IndexRange, Opaque, Port, Tensor
from tilec.verify.inputs import OPEN_EXTENT, Draw, draws, random_inputs
from verify.plans import node, plan_of, tensor


def gather_plan():
    """Token ids, moved by one, look up a table of 7 rows; a mask of integers is only multiplied."""
    return plan_of(
        [
            node("moved[i] = ids[i]", {"i": 5}),
            node("y[i, j] = table[moved[i], j] * f32(mask[i])", {"i": 5, "j": 3}),
        ],
        {"ids": tensor("i64", 5), "table": tensor("f32", 7, 3), "mask": tensor("i64", 5)},
        ["y"],
        {"moved": "i64"},
    )


def test_seeds_give_the_same_numbers_again_and_other_seeds_others():
    plan = gather_plan()
    first, again, other = (random_inputs(plan, Draw(seed)) for seed in (4, 4, 5))
    assert all(np.array_equal(first[name], again[name]) for name in first)
    assert not np.array_equal(first["table"], other["table"])


def test_indices_stay_inside_the_table_through_movement():
    seen = np.concatenate([random_inputs(gather_plan(), Draw(seed))["ids"] for seed in range(40)])
    assert seen.dtype == np.int64
    assert set(seen) == set(range(7))


def test_indices_into_a_dimension_of_extent_1_are_0():
    """Nothing in the plan reads them, but a session checks them."""
    plan = replace(gather_plan(), ranges=(IndexRange("mask", Const(1), "GatherND"),))
    seen = np.concatenate([random_inputs(plan, Draw(seed))["mask"] for seed in range(10)])
    assert set(seen) == {0}


def test_columns_of_indices_stay_inside_of_what_they_index():
    plan = replace(
        gather_plan(), ranges=tuple(IndexRange("mask", Const(e), "n", (0, at)) for at, e in enumerate((9, 4)))
    )
    seen = np.stack([random_inputs(plan, Draw(seed))["mask"] for seed in range(60)])
    assert [set(seen[:, at]) for at in range(2)] == [set(range(9)), set(range(4))]


@pytest.mark.parametrize("rows", [1, 9])
def test_a_mask_whose_sum_indexes_is_a_mask(rows):
    plan = plan_of(
        [
            node("count[i] = sum(j, mask[i, j])", {"i": 2, "j": 4}),
            node("y[i] = table[maximum(minimum(count[i], 8), 0)]", {"i": 2}),
        ],
        {"mask": tensor("i64", 2, 4), "table": tensor("f32", rows)},
        ["y"],
        {"count": "i64"},
    )
    seen = np.concatenate([random_inputs(plan, Draw(seed))["mask"] for seed in range(10)])
    assert set(seen.ravel()) == {0, 1}


def test_other_integers_are_masks():
    seen = np.concatenate([random_inputs(gather_plan(), Draw(seed))["mask"] for seed in range(10)])
    assert set(seen) == {0, 1}


def test_an_input_with_choices_takes_these_unless_it_indexes():
    plan = gather_plan()
    draw = Draw(0, choices=(("mask", (5, 9)), ("ids", (100,))))
    feeds = random_inputs(plan, draw)
    assert set(feeds["mask"]) <= {5, 9}
    assert feeds["ids"].max() < 7


def test_draws_alternate_between_mean_0_and_3():
    assert [draw.mean for draw in draws((7, 8, 9))] == [0.0, 3.0, 0.0]
    plan = plan_of([node("y[i] = x[i]", {"i": 20000})], {"x": tensor("f32", 20000)}, ["y"])
    for draw in draws((0, 1)):
        x = random_inputs(plan, draw)["x"]
        assert x.dtype == np.float32
        assert abs(float(x.mean()) - draw.mean) < 0.05
        assert abs(float(x.std()) - 1.0) < 0.05


def test_every_element_type_gets_its_own():
    types = ["f64", "f32", "f16", "bf16", "i64", "i32", "u8", "i8", "bool"]
    inputs = {f"x_{t}": tensor(t, 300) for t in types}
    plan = plan_of([node("y[i] = x_f32[i]", {"i": 300})], inputs, ["y"])
    feeds = random_inputs(plan, Draw(0))
    assert feeds["x_bf16"].dtype.name == "bfloat16"
    assert feeds["x_u8"].max() > 200
    assert feeds["x_i8"].min() < -100
    assert feeds["x_bool"].dtype == bool


def test_empty_and_scalar_inputs():
    inputs = {"x": tensor("f32", 0, 3), "s": tensor("f32"), "n": tensor("i64", 0)}
    plan = plan_of([node("y[i, j] = x[i, j] + s[()]", {"i": 0, "j": 3})], inputs, ["y"])
    feeds = random_inputs(plan, Draw(0))
    assert feeds["x"].shape == (0, 3)
    assert feeds["s"].shape == ()


def test_a_symbolic_size_names_the_flag():
    plan = plan_of([node("y[i] = x[i]", {"i": 4})], {"x": Tensor((Var("batch"),), "f32")}, ["y"])
    with pytest.raises(UnsupportedError, match="--shape"):
        random_inputs(plan, Draw(0))


def test_texts_have_the_sizes_of_the_other_inputs():
    plan = plan_of([node("y[i] = x[i] + 1.0", {"i": 5})], {"x": tensor("f32", 5)}, ["y"])
    open_text = {"words": Opaque("tensor(string)", ("n", 2)), "free": Opaque("tensor(string)", ("m", None))}
    ports = (*plan.inputs, Port("words", "words"), Port("free", "free"))
    bound = bind_plan(replace(plan, symbols=("n",), inputs=ports, opaque=open_text), {"n": 7})
    drawn = random_inputs(bound, Draw(0))
    assert drawn["words"].shape == (7, 2)
    assert drawn["free"].shape == (OPEN_EXTENT, OPEN_EXTENT)


def test_integers_of_a_cautious_draw_are_0_unless_they_are_compared_with_constants():
    plan = gather_plan()
    drawn = random_inputs(plan, Draw(1, choices=(("mask", (8, 16)),), cautious=True))
    assert set(drawn["ids"]) == {0}
    assert set(drawn["mask"]) <= {8, 16}
    assert drawn["table"].any()
