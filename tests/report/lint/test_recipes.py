"""Lint of recipes: every rule fires at its line."""

import pytest

from tilec.report.lint.files import lint_text


@pytest.mark.parametrize(
    ("text", "code", "said", "line"),
    [
        ("device: a1000\n", "unknown-name", "no device is called 'a1000'", 1),
        ("kind: bench\ndevice: a1000\nmodels: [unet]\n", "unknown-name", "'a1000'", 2),
        ("kind: sweep\nmodels: [unet]\ndevices: [a100, a1000]\n", "unknown-name", "'a1000'", 3),
        (
            "device: a100\nschedule:\n  closed: [l2, smen]\n",
            "unknown-name",
            "a100 has no level 'smen', did you mean 'smem'",
            3,
        ),
        ("schedule: {record: none.json}\n", "unknown-name", "no such file: none.json", 1),
        ("verify:\n  inputs: none.npz\n", "unknown-name", "no such file: none.npz", 2),
        ("fallback: [NonMaxSupression]\n", "unknown-operator", "did you mean 'NonMaxSuppression'", 1),
        ("verify:\n  tolerance: 0.5\n", "loose-tolerance", "0.5 of the largest", 2),
        ("verify: {seeds: [3]}\n", "few-seeds", "one seed", 1),
        ("schedule: {fuson: full}\n", "unknown-key", "unknown key 'fuson'", 1),
        ("schedule: {fusion: fulll}\n", "invalid", "'fulll'", 1),
        ("kind: compil\n", "invalid", "'compil'", 1),
        ("kind: sweep\nworkloads: []\n", "invalid", "convention", 1),
        ("- a list\n", "invalid", "expected keys and values", 1),
        ("", "invalid", "expected keys and values", 0),
    ],
)
def test_each_rule_fires_at_its_line(tmp_path, text, code, said, line):
    findings = lint_text(text, "r.yaml", tmp_path)
    assert [each.code for each in findings][:1] == [code]
    assert said in f"{findings[0].message} {findings[0].remedy}"
    assert findings[0].place.line == line


def test_files_are_looked_for_beside_the_recipe(tmp_path):
    text = "schedule: {record: t.json}\nverify: {inputs: in.npz, seeds: [0]}\n"
    assert len(lint_text(text, "r.yaml", tmp_path)) == 2
    (tmp_path / "t.json").write_text("{}")
    (tmp_path / "in.npz").write_bytes(b"")
    assert lint_text(text, "r.yaml", tmp_path) == []
    assert lint_text("schedule: {record: new.json, profile: true}\n", "r.yaml", tmp_path) == []


def test_a_device_file_beside_the_recipe_is_one(tmp_path):
    (tmp_path / "mine.yaml").write_text("name: mine\n")
    (finding,) = lint_text("device: mine.yaml\n", "r.yaml", tmp_path)
    assert "device 'mine.yaml': key 'kind' is missing" in finding.message
