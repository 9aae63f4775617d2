"""The ledger: which features of the catalogue are done, and the tests that prove it (features.yaml)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from ruamel.yaml import YAML

from tilec.errors import ConfigError

LEDGER = Path(__file__).with_name("features.yaml")

STATUSES = ("done", "later", "refused")


@dataclass(frozen=True)
class Feature:
    """One row: `status` is done, later or refused; only a refusal says `why`."""

    title: str
    status: str
    why: str = ""


def load(path: Path = LEDGER) -> dict[str, Feature]:
    """The rows by id. Raises ConfigError for a row that breaks the rules."""
    rows = {}
    for name, row in YAML(typ="safe").load(path.read_text(encoding="utf-8")).items():
        feature = rows[name] = Feature(**row)
        if feature.status not in STATUSES:
            raise ConfigError(f"{name}: status must be one of {', '.join(STATUSES)}", str(path))
        if bool(feature.why) != (feature.status == "refused"):
            raise ConfigError(f"{name}: a refusal, and only a refusal, says why", str(path))
    return rows


def problems(rows: Mapping[str, Feature], passed: Iterable[str]) -> list[str]:
    """What contradicts the tests that passed: a feature marked done without one, or an id nobody knows."""
    proven = set(passed)
    unproven = [f"{name} ({row.title}) is marked done but no test of it passed" for name, row in rows.items()
                if row.status == "done" and name not in proven]  # fmt: skip
    unknown = [f"{name} is not in the catalogue" for name in sorted(proven - rows.keys())]
    return unproven + unknown


def unclaimed(rows: Mapping[str, Feature], passed: Iterable[str]) -> list[str]:
    """Ids that have passing tests and are not marked done."""
    return [name for name in sorted(set(passed)) if name in rows and rows[name].status == "later"]


def table(rows: Mapping[str, Feature], tests: Mapping[str, int]) -> str:
    """The ledger as text: one line per id with the number of its tests, then the sums."""
    lines = [
        f"{name}  {row.status:<8}{tests.get(name, 0):>4} tests  {row.title}{f': {row.why}' if row.why else ''}"
        for name, row in rows.items()
    ]
    counts = [f"{sum(row.status == status for row in rows.values())} {status}" for status in STATUSES]
    return "\n".join([*lines, "", f"{len(rows)} features: {', '.join(counts)}"])
