"""Verification on a page."""

import json

from report.plans import base

from tilec.report.html import Shown
from tilec.report.html.verdict import verdict


def test_not_verified_and_verified_as_another_plan():
    assert verdict(Shown("here", base())) == {"state": "none"}
    assert verdict(Shown("here", base(), stale=True)) == {"state": "stale"}


def test_outputs_with_tolerance_and_errors():
    report = {
        "outputs": {"y": {"tolerance": 1e-5}},
        "verdict": "pass",
        "verified_on": "host",
        "reference": "onnxruntime",
    }
    run = {"draws": [{"seed": 0, "mean": 0.0, "errors": {"y": 1e-7}}], "latency_us": 12.5, "more": 1}
    told = verdict(Shown("here", base(), report=report, run=run))
    assert told["outputs"] == [{"name": "y", "tolerance": 1e-5, "errors": [1e-7]}]
    assert (told["verdict"], told["verified_on"], told["draws"]) == ("pass", "host", [{"mean": 0.0, "seed": 0}])
    assert told["run"] == {"latency_us": 12.5}
    assert told["counted"] is None


def test_bytes_that_were_counted_on_the_run():
    same = {"counted": {"smem": [1, 2]}, "planned": {"smem": [1, 2]}}
    other = {"counted": {"smem": [1, 3]}, "planned": {"smem": [1, 2]}}
    told = verdict(Shown("here", base(), report={"verdict": "pass", "traffic": {"a": same, "b": other}}))
    assert told["counted"] == {"differ": ["b"], "groups": 2}


def test_what_is_not_as_expected_does_not_break_the_page():
    run = {"draws": [3, {"errors": {"y": float("nan")}, "seed": 0}]}
    told = verdict(Shown("here", base(), report={"outputs": {"y": 7}}, run=run))
    assert told["outputs"] == [{"name": "y", "tolerance": None, "errors": ["nan"]}]
    json.dumps(told, allow_nan=False)
