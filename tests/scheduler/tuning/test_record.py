"""Tuning records as files: one text for one content, errors that name the place."""

import json
from dataclasses import replace

import pytest

from tilec.errors import ArtifactError
from tilec.ir.expr import Const
from tilec.ir.plan import Variant
from tilec.scheduler.tuning.decision import Decision
from tilec.scheduler.tuning.record import Entry, Record, Trial, parse_record, record_text
from tilec.scheduler.tuning.signature import Signature

VARIANT = Variant(Const(True), ("dram", "l2"), {"l2": {"t1": {"i0": 4}}}, {}, "", loads={"t0": ("l2",)})
TRIALS = (Trial((Decision({"t0->t1": "reg"}, (VARIANT,)),), 12), Trial((Decision({}, (VARIANT,)),), None))
ENTRY = Entry(Signature("abc", "Relu", ("f32[4]",), ("f32[4]",)), {"device": "d", "tvm": "1"}, TRIALS, 0)
OTHER = replace(ENTRY, setting={"device": "a", "tvm": "1"})


def test_the_order_of_entries_does_not_matter() -> None:
    one, two = Record().merged(ENTRY).merged(OTHER), Record().merged(OTHER).merged(ENTRY)
    assert record_text(one) == record_text(two)
    assert parse_record(record_text(one), "") == one
    assert list(one.entries.values()) == [OTHER, ENTRY]


def test_the_first_entry_stays_unless_it_is_named() -> None:
    better = replace(ENTRY, trials=TRIALS[:1])
    assert Record().merged(ENTRY).merged(better) == Record().merged(ENTRY)
    assert Record().merged(ENTRY).merged(better, ENTRY) == Record().merged(better)
    assert Record().merged(OTHER).merged(better, ENTRY) == Record().merged(OTHER).merged(better)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "r.json:1:2: not JSON"),
        ("[1]", "r.json: not a tuning record"),
        ('{"artifact": {}}', "r.json: not a tuning record"),
        ('{"kind": "tuning", "entries": [], "format": 9}', "r.json: written in format 9, this tilec reads format 1"),
        ('{"kind": "tuning", "entries": [{}], "format": 1}', "r.json: entries[0]: key 'group' is missing"),
    ],
)
def test_what_is_no_record_is_an_error_with_its_place(text: str, said: str) -> None:
    with pytest.raises(ArtifactError) as error:
        parse_record(text, "r.json")
    assert str(error.value).startswith(said)


@pytest.mark.parametrize(
    ("chosen", "said"),
    [(2, "r.json: entries[0]: chosen is 2, of 2 trials"), ("one", "r.json: entries[0].chosen: expected int")],
)
def test_a_choice_outside_the_trials_is_an_error(chosen: object, said: str) -> None:
    document = json.loads(record_text(Record().merged(ENTRY)))
    document["entries"][0]["chosen"] = chosen
    with pytest.raises(ArtifactError) as error:
        parse_record(json.dumps(document), "r.json")
    assert str(error.value).startswith(said)
