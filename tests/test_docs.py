"""The manual: links lead somewhere, generated tables are fresh, and command lines are ones that tilec takes."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer.main
from cli.conftest import cli  # noqa: F401

from docs import ladder
from docs.picture import svg
from docs.planned import PATTERN_HEAD, REGIONS, WELDER, kept, pattern_cells, rows_of_patterns
from docs.reference import refreshed
from docs.traffic import row, rows_of
from tilec import zoo
from tilec.analysis.totals import predicted
from tilec.cli.app import app
from tilec.cli.plan_origin import plan_of
from tilec.pipeline.request import declared_ranges, declared_scenarios
from tilec.spec.located import parse_yaml, validate
from tilec.spec.recipe import CompileRecipe
from tilec.spec.resolve import parse_device, recipe_source, resolve_device
from tilec.spec.source import Source
from tilec.spec.sweep import SweepRecipe
from tilec.spec.types import TypeSpec, with_type_files

ROOT = Path(__file__).parent.parent
PAGES = (*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md")))

_FENCED = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_NAMED = re.compile(r"`((?:tilec|docs|tests|devices|recipes|types)/[\w./-]*\w)`")


def _prose(page: Path) -> str:
    return _FENCED.sub("", page.read_text())


def _anchors(page: Path) -> set[str]:
    """The anchors of a page's headings as Markdown renderers derive them."""
    titles = re.findall(r"^#+ (.*)$", _prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def _sessions() -> Iterator[tuple[str, str, str]]:
    """(page, command, what it prints) of every command in a console block."""
    for page in PAGES:
        for language, block in _FENCED.findall(page.read_text()):
            if language != "console":
                continue
            for session in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
                command, _, output = re.sub(r"\\\n\s*", "", session).partition("\n")
                yield page.name, command, output


SESSIONS = tuple(_sessions())


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_and_files_exist(page):
    for link in _LINK.findall(_prose(page)):
        if "://" in link:
            continue
        file, _, anchor = link.partition("#")
        target = page.parent / file if file else page
        assert target.is_file(), f"{page.name}: {link}"
        assert not anchor or anchor in _anchors(target), f"{page.name}: {link}"
    for name in _NAMED.findall(_prose(page)):
        assert (ROOT / name).exists(), f"{page.name}: {name}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_generated_tables_are_fresh(page):
    text = page.read_text()
    assert refreshed(text) == text, "run `python -m docs.reference`"


def test_every_command_is_one_that_tilec_takes():
    root = typer.main.get_command(app)
    commands = [(page, command) for page, command, _ in SESSIONS if command.startswith("tilec ")]
    assert len(commands) > 50
    for page, command in commands:
        arguments = re.split(r" [|>] ", command)[0]
        words = shlex.split(arguments, comments=True)[1:]
        if words == ["--install-completion"]:
            continue
        context = root.make_context("tilec", list(words))
        while hasattr(context.command, "commands"):
            name, *words = words
            assert name in context.command.commands, f"{page}: {command}"
            context = context.command.commands[name].make_context(name, list(words), parent=context)


def test_examples_of_files_and_programs_are_legal():
    blocks = [(page.name, *each) for page in PAGES for each in _FENCED.findall(page.read_text())]
    for page, language, text in blocks:
        if language == "python":
            compile(text, page, "exec")
        elif language == "yaml" and text.startswith("kind: sweep"):
            assert all(resolve_device(name) for name in validate(SweepRecipe, parse_yaml(text, page)).devices)
        elif language == "yaml" and page == "device-files.md":
            assert parse_device(Source(text, page)).level_names == ("dram", "sram", "reg")
        elif language == "yaml" and text.startswith("kind: type"):
            assert validate(TypeSpec, parse_yaml(text, page)).format.endswith(" * 0.5 - 7.0>[32]*f16")
        elif language == "yaml":
            recipe = validate(CompileRecipe, with_type_files(parse_yaml(text, page), None))
            assert "seq" not in recipe.shapes or declared_ranges(recipe)["seq"].pivot == 128
            assert recipe.scenarios is None or list(declared_scenarios(recipe)) == ["decode", "prefill", "verify-draft"]


def test_every_target_is_in_the_makefile():
    text = "\n".join(page.read_text() for page in PAGES)
    targets = re.findall(r"^([a-z-]+):.*##", (ROOT / "Makefile").read_text(), re.MULTILINE)
    for name in re.findall(r"`make ([a-z-]+)", text):
        assert name in targets, name


def test_every_target_is_in_the_manual():
    """The table of them in the page for developers, with what each is for."""
    targets = set(re.findall(r"^([a-z-]+):.*##", (ROOT / "Makefile").read_text(), re.MULTILINE))
    rows = re.findall(r"^\| `make ([a-z-]+)` \| .+ \|$", (ROOT / "docs/architecture.md").read_text(), re.MULTILINE)
    assert sorted(rows) == sorted(targets)


def test_every_page_is_in_the_menu():
    menu = (ROOT / "mkdocs.yml").read_text()
    assert [page.name for page in PAGES if page.parent.name == "docs" and page.name not in menu] == []


def test_the_readme_is_short_and_shows_how_the_project_is_tested():
    text = (ROOT / "README.md").read_text()
    assert len(text.splitlines()) <= 120
    assert "`make test`" in text


@pytest.mark.parametrize("start", ["tilec bounds", "tilec explain capacity", "tilec device list", "tilec lint a100"])
def test_small_commands_print_what_the_manual_says(cli, start):  # noqa: F811
    command, output = next((c, o) for _, c, o in SESSIONS if c.startswith(start))
    ran = cli(*shlex.split(command, comments=True)[1:])
    assert ran.code == 0
    assert ran.out.startswith(output)


@pytest.mark.slow
def test_the_picture_is_drawn_from_a_plan(cli, tmp_path):  # noqa: F811
    cli("zoo", "export", "llama-layer-decode", "-o", tmp_path / "llama.onnx")
    cli("compile", tmp_path / "llama.onnx", "--device", "a100", "--to", "schedule")
    text = svg(plan_of(tmp_path / "llama.tilec")[1])
    assert text.count("<rect") == 1 + 11 + 3 + 3
    assert "self_attn_MatMul_3" in text


def test_rows_of_traffic_are_those_of_plans():
    """One network is planned anew; `make docs-tables` writes all rows."""
    rows = rows_of((ROOT / "docs/benchmarks.md").read_text())
    assert rows["nerf-mlp"] == row("nerf-mlp"), "run `make docs-tables`"


def test_rows_of_patterns_are_those_of_plans():
    """One network is planned anew; the row of all has no more than the networks and no fewer than any."""
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in kept("patterns")[1:-1]]
    head, _, *rows = cells
    counts = {model: list(map(int, numbers[1:])) for model, *numbers in rows[:-1]}
    assert [head, rows[-1], list(counts)[:-1]] == [PATTERN_HEAD, WELDER, list(zoo.names())]
    (row,) = rows_of_patterns("nerf-mlp")
    assert pattern_cells(row) in rows, "run `make docs-tables ARGS=patterns`"
    *networks, together = counts.values()
    assert all(max(column) <= all_of <= sum(column) for *column, all_of in zip(*networks, together, strict=True))


@pytest.mark.parametrize("name", ["figure-2", "ladder-memory"])
def test_planned_examples_are_fresh(name):
    """Those that are planned in a second; `make docs-tables` writes all."""
    assert kept(name) == REGIONS[name].lines(), f"run `make docs-tables ARGS={name}`"


def seconds_of_a_product(rows, ttype, options=None):
    """Predicted seconds of a product with 8192 x 8192 weights on an a100."""
    return predicted(ladder.product_plan(rows, (8192, 8192), ttype, options)) / 1e12


@pytest.mark.feature("L17", "L33")
def test_times_of_a_product_follow_the_bits_of_its_weights_for_one_row_only():
    """The bounds are those of the table `ladder-decode`."""
    seconds = seconds_of_a_product
    plain = seconds(1, "f16")
    assert plain < 1.35 * (2 * 8192 * 8192 / 2.039e12 + ladder.LAUNCH)
    times = [plain, *(seconds(1, ttype) for ttype in ("i8", "i4", "i1"))]
    assert times == sorted(set(times), reverse=True)
    assert times[1] < plain / 1.5
    assert seconds(4096, "i4") == pytest.approx(seconds(4096, "f16"), rel=0.1)


@pytest.mark.feature("L32")
def test_every_step_of_the_breakdown_gains_where_its_work_is():
    """Transform where bytes of weights count, units and the place of decoding where arithmetic does."""
    decoding, products = (
        [seconds_of_a_product(rows, "i4", options) for *_, options in ladder.steps()] for rows in (1, 4096)
    )
    none, transform, *others = decoding
    assert none == seconds_of_a_product(1, "f16") > 2 * transform
    assert others == [transform, transform]
    none, transform, units, holistic = products
    assert none > transform > 5 * units > 6 * holistic


@pytest.mark.parametrize("name", ["sensitivity", "studies/host-memory"])
def test_tables_have_a_row_for_every_size_of_their_recipe(name):
    source = recipe_source(name)
    recipe = validate(SweepRecipe, parse_yaml(source.text, source.place))
    sizes = [(model.model, size) for model in recipe.models for size in model.shapes["seq"]]
    rows = [[cell.strip() for cell in line.split("|")[1:3]] for line in kept(name.removeprefix("studies/"))[3:-1]]
    assert [(model, int(size.split()[0])) for model, size in rows] == sizes, "run `make docs-tables`"
