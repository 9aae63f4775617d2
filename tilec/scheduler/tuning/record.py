"""The tuning record: the measured candidates of each group by content, device and tools (Welder, 3.2 and 4)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from tilec.artifact import decode, encode, pretty
from tilec.errors import ArtifactError
from tilec.ir import codec as _forms  # noqa: F401  teaches the artifact codec expressions
from tilec.scheduler.tuning.decision import Decision
from tilec.scheduler.tuning.signature import Signature

FORMAT = 1
KIND = "tuning"
AGAIN = "Undo the edit, or remove the file and measure again with --profile."


@dataclass(frozen=True, slots=True)
class Trial:
    """A candidate and its time; None where it could not be built or run. `predicted` is the time by the cost model, 0
    where the record is older than that."""

    decisions: tuple[Decision, ...]
    picoseconds: int | None
    predicted: int = 0


@dataclass(frozen=True, slots=True)
class Entry:
    """The measurements of one group: candidates in the cost model's order, best first, and the place of the chosen one.

    `setting` names the device, options and tools for which the times hold.
    """

    group: Signature
    setting: Mapping[str, str]
    trials: tuple[Trial, ...]
    chosen: int

    def __post_init__(self) -> None:
        if not 0 <= self.chosen < len(self.trials):
            raise ValueError(f"chosen is {self.chosen}, of {len(self.trials)} trials")

    @property
    def key(self) -> tuple[str, ...]:
        """The entry's key in a record: the group's digest and the setting."""
        return (self.group.digest, *(text for pair in sorted(self.setting.items()) for text in pair))


@dataclass(frozen=True, slots=True)
class Record:
    """Entries by key, sorted."""

    entries: Mapping[tuple[str, ...], Entry] = field(default_factory=dict)

    def find(self, group: str, setting: Mapping[str, str]) -> Entry | str:
        """The entry of a group under a setting, or the reason why there is none.

        A part of the setting whose value is empty here (the version of a tool that is not installed) matches any value.
        """
        same = [entry for entry in self.entries.values() if entry.group.digest == group]
        differences = [_differences(entry.setting, setting) for entry in same]
        for entry, each in zip(same, differences, strict=True):
            if not each:
                return entry
        fewest = min((len(each) for each in differences), default=0)
        nearest = next((each for each in differences if len(each) == fewest), ["no entry for this group"])
        return "; ".join(nearest)

    def merged(self, entry: Entry, instead: Entry | None = None) -> Record:
        """The record with one more entry, in the place of `instead`; any other entry with its key is older and
        stays."""
        known = self.entries.get(entry.key)
        if known is not None and known != instead:
            return self
        return Record(dict(sorted({**self.entries, entry.key: entry}.items())))


def _differences(recorded: Mapping[str, str], here: Mapping[str, str]) -> list[str]:
    return [
        f"{name} differs: recorded {_short(recorded.get(name, ''))}, here {_short(value)}"
        for name, value in here.items()
        if value and recorded.get(name) != value
    ]


def _short(value: str) -> str:
    """The start of a version or digest, 20 characters."""
    return value[:20] if value else "none"


def record_text(record: Record) -> str:
    """The record as canonical JSON."""
    entries = [encode(entry) for entry in record.entries.values()]
    return pretty({"entries": entries, "format": FORMAT, "kind": KIND})


def parse_record(text: str, place: str) -> Record:
    """The record in `text`; `place` is the file's name for errors. Raises ArtifactError."""
    try:
        document = json.loads(text)
    except json.JSONDecodeError as error:
        raise ArtifactError(f"not JSON: {error.msg}", f"{place}:{error.lineno}:{error.colno}", AGAIN) from error
    except (ValueError, RecursionError) as error:
        raise ArtifactError(f"not JSON: {error}", place, AGAIN) from error
    if not isinstance(document, dict) or document.get("kind") != KIND or not isinstance(document.get("entries"), list):
        raise ArtifactError("not a tuning record", place, "Name another file; --profile writes it.")
    if document.get("format") != FORMAT:
        raise ArtifactError(
            f"written in format {document.get('format')}, this tilec reads format {FORMAT}", place, AGAIN
        )
    entries = [decode(Entry, each, place, f"entries[{n}]") for n, each in enumerate(document["entries"])]
    return Record(dict(sorted({entry.key: entry for entry in entries}.items())))
