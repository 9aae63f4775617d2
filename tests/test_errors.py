"""Errors read well and carry the documented exit codes."""

import ast
import pickle
from pathlib import Path

import pytest

from tilec import errors
from tilec.errors import TilecError, did_you_mean

PACKAGE = Path(errors.__file__).parent


def test_message_place_and_hint() -> None:
    assert str(TilecError("it is wrong")) == "it is wrong"
    assert str(TilecError("it is wrong", "f:1:2")) == "f:1:2: it is wrong"
    assert str(TilecError("it is wrong", "f:1:2", "Mend it.")) == "f:1:2: it is wrong\n  Mend it."


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("TilecError", 1),
        ("UsageError", 2),
        ("ConfigError", 2),
        ("ArtifactError", 2),
        ("VerificationMismatch", 4),
        ("UnsupportedError", 5),
        ("UnavailableError", 6),
    ],
)
def test_exit_codes(name: str, code: int) -> None:
    assert getattr(errors, name).exit_code == code


def test_errors_cross_processes() -> None:
    error = pickle.loads(pickle.dumps(errors.ConfigError("m", "p", "h")))
    assert (type(error), error.message, error.place, error.hint) == (errors.ConfigError, "m", "p", "h")


def test_did_you_mean() -> None:
    assert did_you_mean("capacty", ["capacity", "units"]) == "capacity"
    assert did_you_mean("MobileNet-V2", ["mobilenet-v2", "bert-base"]) == "mobilenet-v2"
    assert did_you_mean("zzz", ["capacity", "units"]) is None
    assert did_you_mean("x", []) is None


def test_errors_of_what_people_type_have_a_fix() -> None:
    """Errors that are raised on the way from a command to its result, by their text."""
    without = [
        f"{path.relative_to(PACKAGE)}:{node.lineno} {ast.unparse(node.args[0])}"
        for folder in ("cli", "codegen", "importer", "pipeline")
        for path in sorted((PACKAGE / folder).rglob("*.py"))
        for raised in ast.walk(ast.parse(path.read_text()))
        if isinstance(raised, ast.Raise) and isinstance(node := raised.exc, ast.Call)
        if isinstance(node.func, ast.Name) and node.func.id[0].isupper() and hasattr(errors, node.func.id)
        if len(node.args) < 3 and not any(each.arg in ("hint", None) for each in node.keywords)
    ]
    assert not without
