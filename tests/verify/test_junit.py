"""Reports as JUnit XML."""

from xml.etree import ElementTree

import pytest

from tilec.errors import ArtifactError
from tilec.verify.junit import junit, junit_of_error

REPORT = {
    "verdict": "mismatch",
    "outputs": {"y": {"tolerance": 1e-6}},
    "per_group": {"compared": 2, "total": 2, "diverging": [{"group": "g1"}]},
    "diverging": {"group": "g1", "origin": "relu", "stage": "codegen"},
}
RUN = {
    "draws": [
        {"seed": 0, "mean": 0.0, "errors": {"y": 1e-8}},
        {"inputs": "in.npz", "errors": {"y": "inf"}, "reasons": {"y": "nan instead of 1 at [0]"}},
    ],
    "groups": {
        "g0": {"tensor": "a", "error": 0.0, "tolerance": 1e-6, "origin": "first"},
        "g1": {"tensor": "b", "error": 0.5, "tolerance": 1e-6, "origin": "relu", "reason": "2 instead of 1 at [3]"},
    },
}


def cases(text):
    suite = ElementTree.fromstring(text.encode()).find("testsuite")
    return suite, {(each.get("classname"), each.get("name")): each for each in suite.iter("testcase")}


def test_a_test_for_every_output_and_every_group():
    suite, found = cases(junit("model.tilec", REPORT, RUN))
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("4", "2", "0")
    assert list(found) == [
        ("model.tilec.outputs", "y (seed 0, mean 0)"),
        ("model.tilec.outputs", "y (in.npz)"),
        ("model.tilec.groups", "g0"),
        ("model.tilec.groups", "g1"),
    ]
    failed = [key[1] for key, case in found.items() if case.find("failure") is not None]
    assert failed == ["y (in.npz)", "g1"]
    assert found["model.tilec.groups", "g1"].find("failure").get("message") == "2 instead of 1 at [3]"
    assert "5.0e-01, 1.0e-06 is allowed" in found["model.tilec.groups", "g1"].find("system-out").text


def test_a_group_that_stopped_the_run_is_a_failure():
    report = {"verdict": "mismatch", "diverging": {"group": "g7", "origin": "conv", "stage": "schedule"}}
    suite, found = cases(junit("m", report, {}))
    assert (suite.get("tests"), suite.get("failures")) == ("1", "1")
    assert found["m.groups", "g7"].find("failure").get("message") == "wrong by its schedule"


def test_a_model_without_numbers_is_one_test():
    suite, found = cases(junit("m", {"verdict": "unverified", "because": "nothing to draw"}, {}))
    assert (suite.get("tests"), suite.get("failures")) == ("1", "0")
    assert found["m.model", "verdict"].find("system-out").text == "nothing to draw"


@pytest.mark.parametrize("verdict", ["mismatch", "refused"])
def test_a_verdict_that_no_test_explains_is_a_failure(verdict):
    run = {"draws": [{"seed": 0, "mean": 0.0, "errors": {"y": 0.0}}]}
    suite, found = cases(junit("m", {"verdict": verdict, "outputs": {"y": {"tolerance": 1e-6}}}, run))
    assert suite.get("failures") == "1"
    assert found["m.model", "verdict"].find("failure").get("message") == verdict


def test_an_error_is_told_and_text_is_fit_for_xml():
    suite, found = cases(junit_of_error('a<b>"\x00', ArtifactError("it is \x1b[1mdamaged", "p", "Mend it.")))
    assert (suite.get("tests"), suite.get("errors")) == ("1", "1")
    (case,) = found.values()
    assert case.get("classname") == 'a<b>"?.model'
    assert case.find("error").get("type") == "ArtifactError"
    assert "it is ?[1mdamaged" in case.find("error").text
