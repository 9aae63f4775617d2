"""Every code that the program can print has a page; what the pages show is what the program prints."""

import ast
import functools
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import tilec
from tilec.errors import TilecError, UsageError
from tilec.lower.checks import plan_errors
from tilec.report.codes import KINDS, all_pages, edges, failures, pages_of, placement, plans, roundings, tuning
from tilec.report.codes.page import Page
from tilec.scheduler import refusals

ROOT = Path(tilec.__file__).parent


@functools.cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def trees(package: str, word: str) -> list[ast.Module]:
    """The modules of a package that contain a word."""
    return [tree(path) for path in sorted((ROOT / package).rglob("*.py")) if word in path.read_text(encoding="utf-8")]


def codes(pages: tuple[Page, ...]) -> list[str]:
    return [page.code for page in pages]


def calls(name: str, package: str) -> Iterator[tuple[ast.AST, ast.Call]]:
    """Calls of a function or method in a package, with the function that they stand in."""
    for module in trees(package, f"{name}("):
        for scope in ast.walk(module):
            for node in ast.walk(scope) if isinstance(scope, ast.FunctionDef) else ():
                if isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] == name:
                    yield scope, node


def error_classes() -> dict[str, int]:
    """Every subclass of TilecError in the sources -> its exit code."""
    classes = [node for module in trees("", "Error") for node in module.body if isinstance(node, ast.ClassDef)]
    known = {"TilecError": TilecError.exit_code}
    before = 0
    while before < len(known):
        before = len(known)
        for node in classes:
            base = next((name for name in map(ast.unparse, node.bases) if name in known), None)
            if base is not None:
                own = re.search(r"\bexit_code\b.* = (\d+)", ast.unparse(node))
                known[node.name] = int(own[1]) if own else known[base]
    return known


def test_every_refusal_has_a_page() -> None:
    assert codes(edges.pages()) == list(refusals.REASONS)
    assert codes(plans.pages()) == list(plan_errors.REASONS)
    assert codes(roundings.pages()) == list(refusals.NOT_ROUNDED)


def test_a_new_code_without_a_page_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(refusals.REASONS, "moon", "the moon is full")
    with pytest.raises(KeyError, match="moon"):
        edges.pages()
    monkeypatch.setattr(plans, "REASONS", {**plan_errors.REASONS, "tide": "{edge} is under water"})
    with pytest.raises(KeyError, match="tide"):
        plans.pages()


def test_the_numbers_of_refusals_are_those_that_the_scheduler_gives() -> None:
    given: dict[str, set[str]] = {code: set() for code in refusals.REASONS}
    for _, call in calls("refusal", "scheduler"):
        code = ast.literal_eval(call.args[2])
        given[code] |= {keyword.arg for keyword in call.keywords if keyword.arg is not None}
    given["slower"] |= {"joined", "apart", "limit"}  # of `cost_numbers`
    given["capacity"] |= {"level", "bytes", "capacity", "step", "tile"}  # of overflows and of `objection`
    assert {code: set(numbers) for code, numbers in edges.NUMBERS.items()} == given
    for page in edges.pages():
        shown = set(re.findall(r"(\w+)=", page.example))
        assert shown <= set(page.numbers)
        assert bool(shown) == bool(page.numbers)


def test_the_numbers_of_plan_errors_fill_their_sentences() -> None:
    for page in plans.pages():
        assert set(page.numbers) == set(re.findall(r"{(\w+)}", plan_errors.REASONS[page.code])) - {"edge"}


def test_every_error_class_has_a_page_with_its_exit_code() -> None:
    pages = {page.code: page for page in failures.pages() if page.kind == "error"}
    assert {name: int(page.numbers["exit_code"]) for name, page in pages.items()} == error_classes()


def test_every_exit_code_has_a_page() -> None:
    from tilec.cli.verb import EXIT_CODES, INTERRUPTED, TERMINATED

    documented = {int(code) for code in re.findall(r"(\d+) [a-z]", EXIT_CODES)}
    assert set(failures.EXITS) == documented | {TERMINATED}
    assert set(failures.EXITS) >= {0, INTERRUPTED, *error_classes().values()}


def texts(node: ast.expr, scope: ast.AST) -> Iterator[str]:
    """What an expression that gives a message can be, with 7 in the place of what is only known at run time."""
    if isinstance(node, ast.Constant):
        yield str(node.value)
    elif isinstance(node, ast.JoinedStr):
        yield "".join(str(part.value) if isinstance(part, ast.Constant) else "7" for part in node.values)
    elif isinstance(node, ast.Name):
        for assigned in (n for n in ast.walk(scope) if isinstance(n, ast.Assign)):
            targets, values = [assigned.targets[0]], [assigned.value]
            if isinstance(targets[0], ast.Tuple) and isinstance(values[0], ast.Tuple):
                targets, values = targets[0].elts, values[0].elts
            for target, value in zip(targets, values, strict=True):
                if isinstance(target, ast.Name) and target.id == node.id:
                    yield from texts(value, scope)


def messages(place: int, name: str) -> set[str]:
    return {text for scope, call in calls(name, "importer") for text in texts(call.args[place], scope)}


def test_every_reason_for_a_fallback_has_a_page() -> None:
    found = messages(0, "unsupported") | messages(0, "UnsupportedError") | messages(2, "Unsupported")
    assert len(found) > 40
    pages = placement.pages()
    assert [text for text in sorted(found) if not any(page.covers(text) for page in pages)] == []
    used = {page.code for page in pages for text in found if page.covers(text)}
    assert used == set(codes(pages))


def reasons_of_tuning() -> set[str]:
    """What a choice of the cost model is put down to."""
    found: set[str] = set()
    for file in ("tuner.py", "record.py"):
        for scope in ast.walk(tree(ROOT / "scheduler/tuning" / file)):
            if isinstance(scope, ast.FunctionDef) and scope.name in ("_recorded", "find", "_differences"):
                inner = [node for statement in scope.body for node in ast.walk(statement)]
                inner = [
                    n
                    for n in inner
                    if not (isinstance(n, ast.Constant) and n.value == ast.get_docstring(scope, clean=False))
                ]
                parts = {id(part) for node in inner if isinstance(node, ast.JoinedStr) for part in ast.walk(node)}
                parts -= {id(node) for node in inner if isinstance(node, ast.JoinedStr)}
                wanted = [n for n in inner if isinstance(n, ast.JoinedStr | ast.Constant) and id(n) not in parts]
                found |= {text for node in wanted for text in texts(node, scope)}
            elif isinstance(scope, ast.Subscript) and ast.unparse(scope.value) == "self.sources":
                found |= set(texts(scope.slice, ast.Module([], [])))
    return {text for text in found if " " in text.strip("; ")}


def test_every_reason_of_tuning_has_a_page() -> None:
    found, pages = reasons_of_tuning(), tuning.pages()
    assert [text for text in sorted(found) if not any(page.covers(text) for page in pages)] == []
    assert {page.code for page in pages for text in found if page.covers(text)} == set(codes(pages))


def test_pages_are_complete_and_told_apart() -> None:
    pages = all_pages()
    assert len({(page.kind, page.code) for page in pages}) == len(pages)
    for page in pages:
        assert page.kind in KINDS
        assert page.meaning
        assert not page.meaning.endswith(".")
        assert page.remedy.endswith(".")
        assert page.example


def test_patterns_cover_their_own_examples() -> None:
    for page in (*placement.pages(), *(p for p in tuning.pages() if p.code != "no-entry")):
        assert pages_of(page.example)[0] == page


def test_a_code_of_two_kinds_has_two_pages() -> None:
    assert [page.kind for page in pages_of("capacity")] == ["edge", "plan"]
    assert pages_of("planerror") == pages_of("PlanError")


def test_an_unknown_code_names_the_nearest() -> None:
    with pytest.raises(UsageError, match="no code is called 'slowr'\n  Did you mean 'slower'?"):
        pages_of("slowr")
    with pytest.raises(UsageError, match="lists all codes"):
        pages_of("?")
