"""Where the figures of the manual come from: `python -m docs.provenance [NAME ...]`.

Behind every table of figures stand the commit at which it was made, the device, and a digest of what decides its
figures: plans of small networks (`tests/replay`), device files, recipes. Without names this marks tables whose digest
has changed since; with names, the tables as made now.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path, PurePosixPath

from tilec.artifact import write_text

ROOT = Path(__file__).parent.parent

CPUS = ("tests/replay/golden/*.avx2.json", "tests/replay/golden/*.zen5-avx512.json")
"""Plans for CPUs, which measured times depend on."""

ZEN5 = ("devices/zen5-avx512.yaml", "tests/replay/golden/*.zen5-avx512.json")
A100 = ("devices/a100.yaml", "tests/replay/golden/*.a100.json")
V100 = ("devices/v100.yaml", "tests/replay/golden/*.a100.json")
MI50 = ("devices/mi50.yaml", "tests/replay/golden/*.mi250.json")
H100 = ("devices/h100.yaml", "tests/replay/golden/*.a100.json")
LADDER = ("docs/ladder.py", *A100)

EPYC = "two cores of a Zen 4 EPYC"
CARD = "H100 80GB HBM3"


@dataclass(frozen=True)
class Table:
    """A table: its page, what it was made for, and the files, as patterns, that its figures follow from."""

    page: str
    made_for: str
    shows: tuple[str, ...]


TABLES: Mapping[str, Table] = {
    "speed": Table("benchmarks.md", EPYC, CPUS),
    "compile-times": Table("benchmarks.md", EPYC, CPUS),
    "traces": Table("benchmarks.md", EPYC, CPUS),
    "fusion": Table("benchmarks.md", "zen5-avx512, a100", (*ZEN5, *A100)),
    "patterns": Table("benchmarks.md", "a100", A100),
    "sensitivity": Table("benchmarks.md", "v100", ("recipes/sensitivity.yaml", *V100)),
    "host-memory": Table(
        "benchmarks.md", "v100-16g-host", ("devices/v100-16g-host.yaml", "recipes/studies/host-memory.yaml", *V100)
    ),
    "v100": Table("benchmarks.md", "v100", ("recipes/studies/v100.yaml", *V100)),
    "mi50": Table("benchmarks.md", "mi50", ("recipes/studies/mi50.yaml", *MI50)),
    "h100-kernels": Table("benchmarks.md", CARD, H100),
    "h100-classes": Table("benchmarks.md", CARD, H100),
    "h100-models": Table("benchmarks.md", CARD, H100),
    "h100-fusion": Table("benchmarks.md", CARD, H100),
    "h100-rates": Table("benchmarks.md", CARD, ("tests/on_gpu/probes/*.py",)),
    "figure-2": Table("benchmarks.md", "v100", ("recipes/studies/matmul-softmax.yaml", *V100)),
    "traffic": Table("benchmarks.md", "a100, zen5-avx512", (*A100, *ZEN5)),
    "ladder-memory": Table("benchmarks.md", "any device", ("docs/ladder.py",)),
    "ladder-decode": Table("benchmarks.md", "a100", LADDER),
    "ladder-breakdown": Table("benchmarks.md", "a100", LADDER),
    "ladder-places": Table("benchmarks.md", "a100, zen5-avx512", (*LADDER, *ZEN5)),
    "ladder-widths": Table("benchmarks.md", "a100", LADDER),
    "conformance": Table("benchmarks.md", "any CPU", ("constraints.txt", "tests/conformance/*.py")),
    "plan-line": Table("bounds.md", "a100", A100),
    "shared-launches": Table("fusion-and-search.md", EPYC, CPUS),
    "package-pipelines": Table("packages.md", EPYC, ("tests/outside/packages.py", *CPUS)),
    "package-files": Table("packages.md", EPYC, ("tests/outside/packages.py", *CPUS)),
    "open-files": Table("packages.md", EPYC, ("tests/outside/packages.py", *CPUS)),
    "exports": Table("packages.md", EPYC, ("tests/exports/models.py", *CPUS)),
    "torch-models": Table("packages.md", EPYC, ("tests/torch_models/models.py", "tests/exports/models.py")),
}

REGION = r"(<!-- (planned|measured): {name} -->\n.*?<!-- end -->\n)(\n<!-- made: {name} (\w+) (\w+) -->\n([^\n]*)\n)?"
"""A table between its marks, and the lines behind it that say where it comes from."""

UNKNOWN = "0" * 12
"""The digest of a table that was made before digests were kept, of files that are not known."""


def digest(table: Table, root: Path = ROOT) -> str:
    """The digest of what decides the figures of a table."""
    files = sorted({file for pattern in table.shows for file in root.glob(pattern)})
    return _digest((str(file.relative_to(root)), file.read_bytes()) for file in files)


def _digest(files: Iterable[tuple[str, bytes]]) -> str:
    total = sha256()
    for name, content in files:
        total.update(f"{name}\0{sha256(content).hexdigest()}\n".encode())
    return total.hexdigest()[:12]


def lines_behind(name: str, kind: str, commit: str, made: str) -> str:
    """The lines behind a table that was made at a commit when its digest was `made`."""
    table = TABLES[name]
    since = "" if made == digest(table) else "; what decides these figures has changed since"
    text = f"*{kind.capitalize()} at commit `{commit}`: {table.made_for}{since}.*"
    return f"\n<!-- made: {name} {commit} {made} -->\n{text}\n"


def marked(page: str, text: str, now: Mapping[str, tuple[str, str]]) -> str:
    """A page with the lines behind its tables: those in `now` (name -> commit, digest) made anew, others compared."""
    for name in (name for name, table in TABLES.items() if table.page == page):
        found = re.search(REGION.format(name=name), text, re.DOTALL)
        if found is None:
            raise SystemExit(f"{page}: the table {name} is not there")
        commit, made = now.get(name) or (found[4], found[5])
        if commit is not None:
            text = text.replace(found[0], found[1] + lines_behind(name, found[2], commit, made))
    return text


def digest_at(commit: str, table: Table) -> str:
    """The digest of what decided the figures of a table at a commit."""
    files = _git("ls-tree", "-r", "--name-only", commit).splitlines()
    shown = sorted(file for file in files if any(_matches(file, pattern) for pattern in table.shows))
    return _digest((file, _git("show", f"{commit}:{file}").encode()) for file in shown)


def _matches(file: str, pattern: str) -> bool:
    return file.count("/") == pattern.count("/") and PurePosixPath(file).match(pattern)


def commit_now() -> str:
    """The commit that is checked out."""
    return history()[0]


def history() -> list[str]:
    """The commits up to the one that is checked out, the newest first."""
    return _git("log", "--format=%h", "--abbrev=8").splitlines()


def mark(names: Sequence[str]) -> None:
    """Mark tables as made now, and compare all others."""
    commit = commit_now()
    mark_as({name: (commit, digest(TABLES[name])) for name in names})


def mark_as(now: Mapping[str, tuple[str, str]]) -> None:
    """Mark tables as made at a commit when their digests were these, and compare all others."""
    for page in dict.fromkeys(table.page for table in TABLES.values()):
        path = ROOT / "docs" / page
        before = path.read_text(encoding="utf-8")
        if (after := marked(page, before, now)) != before:
            write_text(path, after)


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", "-C", ROOT, *arguments], check=True, capture_output=True)
    return done.stdout.decode("utf-8")


if __name__ == "__main__":
    mark(sys.argv[1:])
