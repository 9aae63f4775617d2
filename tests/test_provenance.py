"""Tables of figures in the manual say where they come from, and whether what they show has changed since."""

import re
import subprocess

import pytest

from docs.provenance import REGION, ROOT, TABLES, Table, digest, digest_at, history, marked

PAGES = sorted({table.page for table in TABLES.values()})


@pytest.mark.parametrize("page", PAGES)
def test_tables_say_that_what_they_show_has_changed(page):
    text = (ROOT / "docs" / page).read_text()
    assert marked(page, text, {}) == text, "run `python -m docs.provenance`, or make the tables anew"


@pytest.mark.parametrize("name", TABLES)
def test_every_table_names_a_commit_and_a_device(name):
    found = re.search(REGION.format(name=name), (ROOT / "docs" / TABLES[name].page).read_text(), re.DOTALL)
    assert found is not None
    assert found[4] is not None
    assert f"at commit `{found[4]}`: {TABLES[name].made_for}" in found[6]


@pytest.mark.parametrize("page", ["benchmarks.md", "packages.md"])
def test_no_table_of_figures_is_left_out(page):
    text = (ROOT / "docs" / page).read_text()
    for name, table in TABLES.items():
        if table.page == page:
            text = re.sub(REGION.format(name=name), "", text, flags=re.DOTALL)
    assert not re.findall(r"^\|.*$", text, re.MULTILINE)


def test_everything_that_a_table_shows_is_there():
    for name, table in TABLES.items():
        for pattern in table.shows:
            assert any(ROOT.glob(pattern)), (name, pattern)


def test_another_plan_device_or_recipe_is_another_digest(tmp_path):
    table = Table("page.md", "a device", ("device.yaml", "golden/*.json"))
    (tmp_path / "golden").mkdir()
    seen = set()
    for file, text in (("device.yaml", "1"), ("device.yaml", "2"), ("golden/a.json", "1"), ("golden/b.json", "1")):
        (tmp_path / file).write_text(text)
        seen.add(digest(table, tmp_path))
    (tmp_path / "golden/b.txt").write_text("not of it")
    seen.add(digest(table, tmp_path))
    assert len(seen) == 4


def test_the_digest_of_an_earlier_commit_is_that_of_its_files(tmp_path, monkeypatch):
    monkeypatch.setattr("docs.provenance.ROOT", tmp_path)
    table = Table("page.md", "a device", ("device.yaml", "golden/*.json"))
    for file in ("device.yaml", "golden/a.json", "golden/deeper/b.json", "other/golden/c.json"):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text("1")
    then = digest(table, tmp_path)
    for command in ("init -q", "add .", "-c user.name=a -c user.email=a@b commit -q -m one"):
        subprocess.run(["git", *command.split()], cwd=tmp_path, check=True)
    (commit,) = history()
    (tmp_path / "device.yaml").write_text("2")
    assert digest_at(commit, table) == then != digest(table, tmp_path)


def test_a_changed_table_is_marked_and_one_made_anew_is_not():
    text = "<!-- planned: figure-2 -->\n| a |\n<!-- end -->\n\n<!-- made: figure-2 12345678 0123 -->\n*old*\n\nmore\n"
    page = {"figure-2": Table("page.md", "v100", ("devices/v100.yaml",))}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("docs.provenance.TABLES", page)
        changed = marked("page.md", text, {})
        made = marked("page.md", changed, {"figure-2": ("abcdef12", digest(page["figure-2"]))})
    assert "*Planned at commit `12345678`: v100; what decides these figures has changed since.*" in changed
    assert "*Planned at commit `abcdef12`: v100.*\n\nmore\n" in made
