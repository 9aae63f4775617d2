"""Results of the last run as JSON: by backend, one entry a case."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from tests.conformance.judge import Result


def write_results(file: Path, record: Mapping[str, Mapping[str, Result]]) -> None:
    """Keep the results for the next run; those of other backends stay."""
    file.parent.mkdir(parents=True, exist_ok=True)
    kept = json.loads(file.read_text()) if file.is_file() else {}
    data = {name: [asdict(result) for result in results.values()] for name, results in record.items()}
    file.write_text(json.dumps({**kept, **data}, indent=1) + "\n")


def read_results(file: Path, backend: str) -> dict[str, Result]:
    """The results of the last run."""
    if not file.is_file():
        return {}
    return {entry["name"]: Result(**entry) for entry in json.loads(file.read_text()).get(backend, [])}
