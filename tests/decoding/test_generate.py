"""The loop of a decoder: what it feeds, where it stops, what it refuses; roles of ports."""

from types import SimpleNamespace

import numpy as np
import pytest

from tilec.abi.manifest import TensorSpec
from tilec.abi.shape_program import SymbolSpec
from tilec.decoding import Generation, decoder_of
from tilec.decoding.generate import GREEDY, batches_of, tokens_of
from tilec.errors import UnsupportedError, UsageError

IDS = TensorSpec("input_ids", "i64", ("b", "s"))
MASK = TensorSpec("attention_mask", "i64", ("b", "t"))
POSITIONS = TensorSpec("position_ids", "i64", ("b", "s"))
PAST = TensorSpec("past_key_values.0.key", "f32", ("b", 2, "p", 4))
LOGITS = TensorSpec("logits", "f32", ("b", "s", 10))
PRESENT = TensorSpec("present.0.key", "f32", ("b", 2, "p", 4))
GROWN = TensorSpec("present.0.key", "f32", ("b", 2, "p + s", 4))


def _session(inputs=(IDS, MASK, POSITIONS, PAST), outputs=(LOGITS, PRESENT), states=None, symbols=()):
    return SimpleNamespace(inputs=inputs, outputs=outputs, states=states or {}, symbols=symbols)


IN_PLACE = {PAST.name: PRESENT.name}


class Counting:
    """The next token is the last one and the number of tokens so far, modulo 10; keeps what it is fed."""

    def __init__(self):
        self.fed = []

    def __call__(self, feeds, out):
        self.fed.append({name: np.array(array) for name, array in feeds.items()})
        ids, past = feeds["input_ids"], feeds[PAST.name]
        total = feeds["attention_mask"].shape[1]
        logits = np.zeros((1, ids.shape[1], 10), "f4")
        logits[0, -1, (ids[0, -1] + total) % 10] = 1
        present = out.get(PRESENT.name, np.concatenate([past, np.zeros((1, 2, ids.shape[1], 4), "f4")], 2))
        assert (present is past) == bool(out)
        return {"logits": logits, PRESENT.name: present}


@pytest.mark.parametrize("states", [{}, IN_PLACE])
def test_the_prompt_in_one_call_then_a_token_a_call(states):
    run, told = Counting(), Generation(3)
    decoder = decoder_of(_session(outputs=(LOGITS, PRESENT if states else GROWN), states=states))
    assert list(tokens_of(run, decoder, [7, 1, 2], 4, (), GREEDY, 0, told)) == [5, 9, 4, 0]
    assert [fed["input_ids"].tolist() for fed in run.fed] == [[[7, 1, 2]], [[5]], [[9]], [[4]]]
    assert [fed["attention_mask"].shape for fed in run.fed] == [(1, 3), (1, 4), (1, 5), (1, 6)]
    assert [fed["position_ids"].tolist() for fed in run.fed] == [[[0, 1, 2]], [[3]], [[4]], [[5]]]
    rows = [fed[PAST.name].shape[2] for fed in run.fed]
    assert rows == ([64] * 4 if states else [0, 3, 4, 5])
    assert (told.tokens, len(told.steps)) == ([5, 9, 4, 0], 3)
    assert told.first > 0


def test_a_stop_is_the_last_token():
    run = Counting()
    decoder = decoder_of(_session(outputs=(LOGITS, GROWN)))
    assert list(tokens_of(run, decoder, [7, 1, 2], 50, (9,), GREEDY, 0, Generation(3))) == [5, 9]
    assert len(run.fed) == 2


def test_caches_of_fixed_room_hold_all_but_the_last_token():
    fixed, after = (TensorSpec(each.name, "f32", ("b", 2, 6, 4)) for each in (PAST, PRESENT))
    decoder = decoder_of(_session((IDS, MASK, POSITIONS, fixed), (LOGITS, after), IN_PLACE))
    assert decoder.room == 6
    assert len(list(tokens_of(Counting(), decoder, [1, 2, 3], 4, (), GREEDY, 0, Generation(3)))) == 4
    with pytest.raises(UsageError, match="a prompt of 3 tokens and 5 more do not fit into caches of 6") as refused:
        tokens_of(Counting(), decoder, [1, 2, 3], 5, (), GREEDY, 0, Generation(3))
    assert refused.value.hint == "Ask for fewer: 4 at most, or export the model with longer caches."
    with pytest.raises(UsageError, match="the prompt has no tokens"):
        tokens_of(Counting(), decoder, [], 5, (), GREEDY, 0, Generation(0))


def test_caches_that_grow_in_the_model_have_room_and_are_told_their_rows():
    rows = TensorSpec("p", "bool", ("p",))
    past, after = (TensorSpec(each.name, "f32", ("b", 2, "capacity", 4)) for each in (PAST, PRESENT))
    decoder = decoder_of(_session((IDS, MASK, past, rows), (LOGITS, after), IN_PLACE))
    run = Counting()
    assert len(list(tokens_of(run, decoder, [7, 1, 2], 3, (), GREEDY, 0, Generation(3)))) == 3
    assert [(fed["p"].shape, fed[PAST.name].shape[2]) for fed in run.fed] == [((0,), 64), ((3,), 64), ((4,), 64)]
    other = decoder.in_the_model
    assert [(each.grows, each.in_place) for each in other.caches] == [(True, False)]
    run = Counting()
    assert len(list(tokens_of(run, other, [7, 1, 2], 3, (), GREEDY, 0, Generation(3)))) == 3
    assert [("p" in fed, fed[PAST.name].shape[2]) for fed in run.fed] == [(False, 0), (False, 3), (False, 4)]


def test_a_model_has_a_number_of_positions():
    symbols = (SymbolSpec("s", "input", 0, 1), SymbolSpec("t", "input", 1, 1, high=6))
    decoder = decoder_of(_session(states=IN_PLACE, symbols=symbols))
    assert [decoder.most(prompt) for prompt in (1, 6, 7, 8)] == [6, 1, 0, 0]
    with pytest.raises(
        UsageError, match="a prompt of 7 tokens and 1 more are beyond the model's 6 positions"
    ) as refused:
        tokens_of(Counting(), decoder, [1] * 7, 1, (), GREEDY, 0, Generation(7))
    assert refused.value.hint == "Give a shorter prompt."


def test_a_model_of_fixed_room_is_told_the_places_of_new_tokens_and_a_mask_of_all():
    fixed, after = (TensorSpec(each.name, "f32", ("b", 2, 6, 4)) for each in (PAST, PRESENT))
    mask, places = TensorSpec("attention_mask", "bool", ("b", 6)), TensorSpec("cache_position", "i64", ("s",))
    decoder = decoder_of(_session((IDS, mask, places, fixed), (LOGITS, after), IN_PLACE))
    run = Counting()
    assert len(list(tokens_of(run, decoder, [1, 2, 3], 3, (), GREEDY, 0, Generation(3)))) == 3
    assert [fed["cache_position"].tolist() for fed in run.fed] == [[0, 1, 2], [3], [4]]
    assert [fed["attention_mask"].tolist() for fed in run.fed] == [
        [[n < total for n in range(6)]] for total in (3, 4, 5)
    ]
    rows = TensorSpec("past_rows", "bool", ("past_rows",))
    told = decoder_of(_session((IDS, mask, places, fixed, rows), (LOGITS, after), IN_PLACE))
    run = Counting()
    assert len(list(tokens_of(run, told, [1, 2, 3], 3, (), GREEDY, 0, Generation(3)))) == 3
    assert [fed["past_rows"].shape for fed in run.fed] == [(0,), (3,), (4,)]
    assert told.in_the_model == decoder


def test_caches_of_the_latest_tokens_have_room_for_the_window_and_are_handed_on():
    config = SimpleNamespace(inputs={}, outputs={}, layers=0, window=200)
    latest, after = (TensorSpec(f"{name}.1.key", "f32", ("b", 2, "w", 4)) for name in ("past_key_values", "present"))
    decoder = decoder_of(_session((IDS, MASK, PAST, latest), (LOGITS, PRESENT, after), IN_PLACE), config)
    assert [(each.grows, each.in_place) for each in decoder.caches] == [(False, True), (False, False)]
    assert decoder.room_for(3, 4) == 200
    fed = []

    def run(feeds, out):
        fed.append(feeds[latest.name])
        logits = np.zeros((1, feeds["input_ids"].shape[1], 10), "f4")
        return {"logits": logits, PRESENT.name: out[PRESENT.name], after.name: feeds[latest.name] + 1}

    assert list(tokens_of(run, decoder, [1], 3, (), GREEDY, 0, Generation(1))) == [0, 0, 0]
    assert [(array.shape, array.max()) for array in fed] == [((1, 2, 200, 4), n) for n in range(3)]


@pytest.mark.parametrize(
    ("inputs", "outputs", "reason"),
    [
        ((MASK, PAST), (LOGITS, PRESENT), "no input 'input_ids'"),
        ((IDS, MASK, PAST), (PRESENT,), "no output `logits`"),
        ((IDS, MASK, PAST, TensorSpec("pixels", "f32", (1, 3))), (LOGITS, PRESENT), "'pixels' has no role"),
    ],
)
def test_other_models_are_refused_by_the_port_at_fault(inputs, outputs, reason):
    with pytest.raises(UnsupportedError, match=reason):
        decoder_of(_session(inputs, outputs))


class Batched:
    """The next token of a sequence is the sum of the tokens that its mask shows, modulo 10; keeps what it is fed."""

    def __init__(self, right):
        self.fed, self.right, self.before = [], right, None

    def __call__(self, feeds, _out):
        self.fed.append({name: array.tolist() for name, array in feeds.items() if array.ndim < 3})
        ids, mask = feeds["input_ids"], feeds["attention_mask"]
        count, width = ids.shape
        new = ids if self.before is None else np.concatenate([self.before, ids], 1)
        shown = mask.astype(bool)
        if self.right and self.before is not None:  # rows follow each other without gaps
            new = np.zeros_like(mask)
            new[:, : self.before.shape[1]] = self.before
            new[np.arange(count), shown.sum(1) - 1] = ids[:, 0]
        self.before = np.where(shown, new, 0)
        logits = np.zeros((count, width, 10), "f4")
        ends = shown.sum(1) - 1 if self.right and width > 1 else np.full(count, width - 1)
        logits[np.arange(count), ends, self.before.sum(1) % 10] = 1
        return {"logits": logits, PRESENT.name: feeds[PAST.name]}


@pytest.mark.parametrize("right", [True, False])
def test_prompts_of_different_length_are_filled_up_where_the_caches_demand_it(right):
    states = IN_PLACE if right else {}
    decoder = decoder_of(_session(outputs=(LOGITS, PRESENT if right else GROWN), states=states))
    run, told = Batched(right), Generation(4)
    steps = list(batches_of(run, decoder, [[1, 2, 3], [4]], 4, (2,), seeds=(0, 0), told=told))
    assert steps == [(6, 4), (2, 8), (None, 6), (None, 2)]
    assert (told.rows, len(told.steps)) == ([[6, 2], [4, 8, 6, 2]], 3)
    filled = [4, 0, 0] if right else [0, 0, 4]
    assert run.fed[0]["input_ids"] == [[1, 2, 3], filled]
    assert run.fed[0]["attention_mask"] == [[1, 1, 1], [int(token > 0) for token in filled]]
    assert run.fed[0]["position_ids"] == [[0, 1, 2], [0, 0, 0]]
    assert run.fed[1]["attention_mask"] == [[1] * 4, [1, 1, 0, 0] if right else [0, 0, 1, 1]]
    assert [fed["position_ids"] for fed in run.fed[1:]] == [[[3], [1]], [[4], [2]], [[5], [3]]]


def test_what_a_model_cannot_hold_beside_each_other_is_refused():
    run = Counting()
    unmasked = decoder_of(_session((IDS, POSITIONS, PAST), (LOGITS, GROWN)))
    with pytest.raises(UnsupportedError, match="need an input `attention_mask`"):
        batches_of(run, unmasked, [[1, 2], [3]], 4)
    last = TensorSpec("logits", "f32", ("b", 1, 10))
    with pytest.raises(UnsupportedError, match="logits of the last one alone"):
        batches_of(run, decoder_of(_session(outputs=(last, PRESENT), states=IN_PLACE)), [[1, 2], [3]], 4)
    alone = decoder_of(_session((TensorSpec("input_ids", "i64", (1, "s")), MASK, PAST), (LOGITS, GROWN)))
    with pytest.raises(UsageError, match="a batch of 1 in 'input_ids', and there are 2 prompts"):
        batches_of(run, alone, [[1], [3]], 4)
