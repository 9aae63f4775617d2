"""The header of an artifact: kinds, versions, edits, freshness; every error names the file."""

from pathlib import Path

import pytest

from tilec.artifact import Artifact, is_fresh, parse_artifact, pretty, read_artifact
from tilec.errors import ArtifactError, UsageError

PLAN = Artifact("plan", {"device": "d1", "graph": "g1"}, {"groups": [{"tiles": [4, 128]}]})


def test_round_trip(tmp_path: Path) -> None:
    PLAN.write(tmp_path / "2-plan.json")
    assert read_artifact(tmp_path / "2-plan.json", "plan") == PLAN


def test_reformatting_is_not_an_edit_and_keeps_the_digest() -> None:
    again = parse_artifact(PLAN.text().replace("\n", "\n\n"), "plan", "2-plan.json")
    assert not again.edited
    assert again.digest == PLAN.digest


def test_an_edit_is_accepted_and_marked() -> None:
    edited = parse_artifact(PLAN.text().replace("128", "64"), "plan", "2-plan.json")
    assert edited.edited
    assert edited.body == {"groups": [{"tiles": [4, 64]}]}
    assert edited.digest != PLAN.digest
    assert parse_artifact(edited.text(), "plan", "2-plan.json").edited


def test_freshness_goes_by_inputs(tmp_path: Path) -> None:
    path = tmp_path / "2-plan.json"
    assert not is_fresh(path, "plan", PLAN.inputs)
    PLAN.write(path)
    assert is_fresh(path, "plan", {"graph": "g1", "device": "d1"})
    assert not is_fresh(path, "plan", {"graph": "g2", "device": "d1"})
    assert not is_fresh(path, "plan", {"graph": "g1"})
    assert not is_fresh(path, "graph", PLAN.inputs)
    path.write_text(PLAN.text().replace("128", "64"))
    assert is_fresh(path, "plan", PLAN.inputs)
    path.write_text(PLAN.text()[:-5])
    assert not is_fresh(path, "plan", PLAN.inputs)


def test_inputs_that_no_longer_fit() -> None:
    PLAN.require_inputs({"device": "d1", "recipe": "not recorded"}, "2-plan.json")
    with pytest.raises(ArtifactError) as error:
        PLAN.require_inputs({"device": "d2", "graph": "g2"}, "2-plan.json")
    assert str(error.value) == (
        "2-plan.json: made from another device and another graph\n  Run `tilec schedule` again."
    )
    assert error.value.exit_code == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"artifact":\n  oops', "p.json:2:3: not JSON: Expecting value"),
        ('{"x": NaN}', "p.json: not JSON: NaN is not a JSON number"),
        ("[" * 200_000, "p.json: not JSON: "),
        ("[1]", "p.json: not a tilec artifact: it has no header"),
        ('{"artifact": {"kind": "cake"}}', "p.json: not a tilec artifact: it has no header"),
        (pretty({"artifact": {"kind": "graph"}}), "p.json: this is a graph, a plan is needed"),
        (
            PLAN.text().replace('"format": 1', '"format": 7'),
            "p.json: written in format 7, this tilec reads format 1",
        ),
        (
            PLAN.text().replace('"g1"', "1"),
            "p.json: the header's `inputs` must map roles to sha256 digests",
        ),
    ],
)
def test_malformed_artifacts(text: str, message: str) -> None:
    with pytest.raises(ArtifactError) as error:
        parse_artifact(text, "plan", "p.json")
    assert str(error.value).startswith(message)
    assert error.value.hint in ("Run `tilec schedule` again.", "`tilec schedule` writes a plan.")


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no such file\n  `tilec import` writes it"):
        read_artifact(tmp_path / "1-graph.json", "graph")
    with pytest.raises(UsageError, match="this is a folder"):
        read_artifact(tmp_path, "graph")
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ArtifactError, match="not JSON: the file is binary"):
        read_artifact(tmp_path / "binary", "graph")
