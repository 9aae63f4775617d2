"""Findings as a table, JSON, SARIF and annotations."""

from tilec.report.lint.finding import Finding, Place, place_of, pointer
from tilec.report.lint.forms import counted, table, to_github, to_json, to_sarif
from tilec.report.lint.rules import RULES

FOUND = [
    Finding("unknown-key", Place("d,1.yaml", 27, 5), "unknown key 'capcity'", "Did you mean 'capacity'?"),
    Finding("far-from-bound", Place("p.json", pointer=pointer("groups", 3, "a/b~c")), "too 100% far"),
]


def test_table():
    assert table(FOUND).splitlines() == [
        "d,1.yaml:27:5: error unknown-key: unknown key 'capcity'",
        "  Did you mean 'capacity'?",
        "p.json#/groups/3/a~1b~0c: warning far-from-bound: too 100% far",
        f"  {RULES['far-from-bound'].fix}",
    ]
    assert table([]) == ""
    assert counted(FOUND, 1) == "1 file: 1 error, 1 warning"
    assert counted(FOUND * 2, 2) == "2 files: 2 errors, 2 warnings"
    assert counted([], 3) == "3 files: no findings"


def test_json():
    first, second = to_json(FOUND)["findings"]
    assert first == {
        "code": "unknown-key",
        "severity": "error",
        "file": "d,1.yaml",
        "line": 27,
        "column": 5,
        "message": "unknown key 'capcity'",
        "fix": "Did you mean 'capacity'?",
    }
    assert second["pointer"] == "/groups/3/a~1b~0c"
    assert "line" not in second


def test_sarif():
    log = to_sarif([*FOUND, Finding("edited", Place("/abs/p q.json"), "edited")], "1.2")
    assert (log["version"], log["$schema"]) == ("2.1.0", "https://json.schemastore.org/sarif-2.1.0.json")
    (run,) = log["runs"]
    driver = run["tool"]["driver"]
    assert (driver["name"], driver["version"]) == ("tilec lint", "1.2")
    assert [rule["id"] for rule in driver["rules"]] == ["unknown-key", "edited", "far-from-bound"]
    for result in run["results"]:
        assert driver["rules"][result["ruleIndex"]]["id"] == result["ruleId"]
        assert result["level"] in ("error", "warning")
        assert result["message"]["text"]
        (location,) = result["locations"]
        assert location["physicalLocation"]["artifactLocation"]["uri"]
    first, second, third = (result["locations"][0] for result in run["results"])
    assert first["physicalLocation"]["region"] == {"startLine": 27, "startColumn": 5}
    assert second["logicalLocations"][0]["fullyQualifiedName"] == "/groups/3/a~1b~0c"
    assert third["physicalLocation"] == {"artifactLocation": {"uri": "file:///abs/p%20q.json"}}
    assert to_sarif([], "1")["runs"][0]["results"] == []


def test_github():
    first, second = to_github(FOUND).splitlines()
    assert first == (
        "::error file=d%2C1.yaml,line=27,col=5,title=unknown-key::unknown key 'capcity'. Did you mean 'capacity'?"
    )
    assert second.startswith("::warning file=p.json,title=far-from-bound::too 100%25 far (/groups/3/a~1b~0c). ")


def test_places_of_errors():
    assert place_of("d.yaml:3:4", "x") == Place("d.yaml", 3, 4)
    assert place_of("C:/d.yaml:3:4", "x") == Place("C:/d.yaml", 3, 4)
    assert place_of("d.yaml", "x") == Place("d.yaml")
    assert place_of(None, "x") == Place("x")
