"""Canonical JSON: parses back, deterministic, readable."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tilec.artifact import compact, digest_object, pretty

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=30) | st.dictionaries(st.text(max_size=8), inner, max_size=8),
    max_leaves=60,
)


@settings(max_examples=15)
@given(JSON)
def test_both_forms_parse_back(value: object) -> None:
    assert json.loads(pretty(value)) == value
    assert json.loads(compact(value)) == value


@settings(max_examples=12)
@given(st.dictionaries(st.text(max_size=8), JSON, max_size=8))
def test_order_of_keys_does_not_matter(value: dict[str, object]) -> None:
    turned = dict(reversed(value.items()))
    assert pretty(turned) == pretty(value)
    assert digest_object(turned) == digest_object(value)


def test_short_values_stay_on_one_line_and_long_ones_break() -> None:
    value = {"tiles": [4, 128], "groups": [{"name": "x" * 24, "nodes": ["a" * 40, "b" * 40]}, {}], "list": []}
    expected = f"""{{
 "groups": [
  {{"name": "{"x" * 24}", "nodes": ["{"a" * 40}", "{"b" * 40}"]}},
  {{}}
 ],
 "list": [],
 "tiles": [4, 128]
}}
"""
    assert pretty(value) == expected


def test_long_lists_of_scalars_are_filled_like_a_paragraph() -> None:
    lines = pretty(list(range(1000))).splitlines()
    assert len(lines) < 50
    assert max(map(len, lines)) <= 141


def test_bulk_comes_behind_what_is_decided_about_it() -> None:
    text = pretty({"constants": list(range(90)), "groups": [1], "nodes": "x", "tensors": {}, "verdict": 2})
    assert list(json.loads(text)) == ["groups", "verdict", "nodes", "tensors", "constants"]


def test_text_is_utf8_not_escapes() -> None:
    assert pretty({"unit": "µs"}) == '{"unit": "µs"}\n'


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_what_json_cannot_hold_is_refused(value: float) -> None:
    with pytest.raises(ValueError, match="JSON compliant"):
        pretty([value])
