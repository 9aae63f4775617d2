"""Every code that lint can give has a rule and a page, and every rule is given somewhere."""

import ast
from pathlib import Path

import tilec.report.lint
from tilec.report.codes import pages_of
from tilec.report.lint.rules import RULES
from tilec.spec import contradictions

FOLDER = Path(tilec.report.lint.__file__).parent
MAKERS = ("Finding", "found", "Contradiction")


def codes() -> set[str]:
    """First arguments of `Finding(...)`, of the helpers that make one, and of `Contradiction(...)`."""
    found = set()
    for file in (*FOLDER.glob("*.py"), Path(contradictions.__file__)):
        for call in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in MAKERS:
                found |= {call.args[0].value} if isinstance(call.args[0], ast.Constant) else set()
    return found


def test_codes_and_rules_are_the_same():
    assert codes() | {"invalid", "unknown-key"} == set(RULES)


def test_every_rule_has_a_page_that_explains_it():
    for rule in RULES.values():
        (page,) = (page for page in pages_of(rule.code) if page.kind == "lint")
        assert rule.example in page.example
        assert rule.fix.endswith(".")
        assert not rule.meaning.endswith(".")
