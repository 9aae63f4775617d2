"""Bounds as CSV and as plain data for JSON; bytes are integers, and whole curves are listed without capacities."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from typing import Any

from tilec.analysis.bounds.rows import MEASURED, At, Row, rows_of
from tilec.analysis.bounds.subject import LB, LB_MEANING, Attained, Subject
from tilec.bounds.einsum.mapspaces import PARALLEL, PARALLEL_MEANING
from tilec.bounds.levels import NOT_JOINT

_SUBJECT = ("name", "count", "sizes")
_POINT = ("traffic_bytes", "accesses_words", "buffer_bytes", "mapping")


def meanings(subjects: Sequence[Subject], ats: Sequence[At] = ()) -> dict[str, str]:
    """Map from mapspace to its description."""
    descriptions = {slope.name: slope.meaning for subject in subjects for slope in subject.slopes}
    if any(at.units > 1 for at in ats) and any(subject.parallel is not None for subject in subjects):
        descriptions[PARALLEL] = PARALLEL_MEANING
    return {**descriptions, LB: LB_MEANING}


def bounds_csv(subjects: Sequence[Subject], ats: Sequence[At]) -> str:
    """One line for every subject, capacity and mapspace, with a heading; without capacities, one for every point."""
    memory = io.StringIO()
    writer = csv.writer(memory, lineterminator="\n")
    at = ("level", "capacity_bytes") if ats else ()
    writer.writerow([*_SUBJECT, *at, "mapspace", *_POINT, *(("because",) if ats else ())])
    for subject in subjects:
        sizes = " ".join(f"{name}={size}" for name, size in subject.sizes.items())
        head = [subject.name, subject.count, sizes]
        if ats:
            for row in rows_of(subject, ats):
                place = [row.at.level.level if row.at.level else "", row.at.capacity]
                point = _cells(row.point) if row.point else ["" if row.traffic is None else row.traffic, "", "", ""]
                writer.writerow([*head, *place, row.mapspace, *point, row.because])
            continue
        for slope in subject.slopes:
            writer.writerows([*head, slope.name, *_cells(point)] for point in slope.points)
    return memory.getvalue()


def _cells(point: Attained) -> list[object]:
    return [point.traffic_bytes, point.accesses, point.buffer_bytes, str(point.mapping)]


def bounds_to_json(subjects: Sequence[Subject], ats: Sequence[At]) -> dict[str, Any]:
    """All subjects as plain data: bounds at the capacities, or whole curves without capacities."""
    data: dict[str, Any] = {
        "mapspaces": meanings(subjects, ats),
        "subjects": [_subject(each, ats) for each in subjects],
    }
    if any(at.level for at in ats):
        data["levels"] = NOT_JOINT
    return data


def _subject(subject: Subject, ats: Sequence[At]) -> dict[str, Any]:
    data: dict[str, Any] = {
        "name": subject.name,
        "count": subject.count,
        "text": subject.text,
        "sizes": dict(subject.sizes),
        "bits": dict(subject.bits),
        "compulsory_bytes": subject.compulsory,
        "operations": subject.operations,
        "largest_useful_buffer_bytes": {slope.name: slope.largest_useful_buffer for slope in subject.slopes},
    }
    if subject.notes:
        data["notes"] = list(subject.notes)
    if ats:
        rows = list(rows_of(subject, ats))
        return {**data, "bounds": [_at(at, [row for row in rows if row.at is at]) for at in ats]}
    curves = {slope.name: [_point(point) for point in slope.points] for slope in subject.slopes}
    return {**data, "curves": curves}


def _at(at: At, rows: Sequence[Row]) -> dict[str, Any]:
    bounds = {row.mapspace: _bound(row) for row in rows if row.mapspace != MEASURED}
    data: dict[str, Any] = {"capacity_bytes": at.capacity, **({"units": at.units} if at.units > 1 else {}), **bounds}
    if real := {row.because: row.traffic for row in rows if row.mapspace == MEASURED}:
        data["measured_bytes"] = real
    if at.level is None:
        return data
    return {"level": at.level.level, "below": at.level.below, "instances": at.level.instances, **data}


def _bound(row: Row) -> Mapping[str, Any]:
    if row.point is not None:
        return _point(row.point)
    return {"traffic_bytes": row.traffic, "because": row.because}


def _point(point: Attained) -> dict[str, Any]:
    return dict(zip(_POINT, _cells(point), strict=True))
