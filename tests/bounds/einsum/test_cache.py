"""Curves in the user's cache: found again under other names, never in the way."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bounds import walk
from tilec.bounds.einsum import cache
from tilec.bounds.einsum.cache import cached, key
from tilec.bounds.einsum.curve import Curve
from tilec.bounds.einsum.einsum import Einsum, parse_einsum
from tilec.bounds.einsum.mapspaces import Kind
from tilec.bounds.einsum.oro import oro
from tilec.bounds.einsum.oro_plus import oro_plus
from tilec.errors import UnsupportedError

CONV = "O[p,k] = sum(r,c, I[p*2 + r,c] * W[r,c,k])"
EXTENTS = {"p": 7, "k": 6, "r": 3, "c": 5}


@pytest.fixture
def worked_out(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The Einsums whose curves are worked out, not read."""
    seen: list[str] = []

    def counting(einsum: Einsum, _kind: Kind) -> Curve:
        seen.append(einsum.text)
        return oro_plus(einsum)

    monkeypatch.setattr(cache, "_worked_out", counting)
    return seen


@pytest.mark.parametrize("seed", range(20))
def test_a_curve_comes_back_as_it_was(seed: int, tmp_path: Path) -> None:
    einsum = walk.random_einsum(seed)
    for kind, bound in (("oro", oro), ("oro+", oro_plus)):
        assert cached(einsum, kind, tmp_path) == bound(einsum) == cached(einsum, kind, tmp_path)
    assert len(list(tmp_path.iterdir())) == 2


def test_the_same_shape_is_worked_out_once_whatever_its_names(tmp_path: Path, worked_out: list[str]) -> None:
    cached(parse_einsum(CONV, EXTENTS), "oro+", tmp_path)
    other = parse_einsum(
        "y[b,n] = sum(t,d, where(b >= 1, x[b*2 + t - 1,d], 0.0) * v[t,d,n])", {"b": 7, "n": 6, "t": 3, "d": 5}
    )
    assert cached(other, "oro+", tmp_path) == oro_plus(other)
    assert len(worked_out) == 1


@pytest.mark.parametrize(
    ("text", "extents", "bits"),
    [
        (CONV, {**EXTENTS, "c": 6}, 8),
        (CONV, EXTENTS, 16),
        (CONV, EXTENTS, {"I": 8, "W": 4, "O": 8}),
        (CONV.replace("*2", "*3"), EXTENTS, 8),
    ],
)
def test_what_a_curve_depends_on_is_in_its_key(
    text: str, extents: dict[str, int], bits: int | dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = parse_einsum(CONV, EXTENTS)
    other = parse_einsum(text, extents, bits)
    assert len({key(first, "oro"), key(first, "oro+"), key(other, "oro+")}) == 3
    before = key(first, "oro+")
    monkeypatch.setattr(cache, "ENGINE", cache.ENGINE + 1)
    assert key(first, "oro+") != before


@pytest.mark.parametrize(
    "broken", ["", "{", "[]", '{"snake":true}', '{"snake":true,"mapspace":"","mappings":1,"points":[]}', "\x00", "null"]
)
def test_files_that_make_no_sense_are_written_anew(broken: str, tmp_path: Path, worked_out: list[str]) -> None:
    einsum = parse_einsum(CONV, EXTENTS)
    path = tmp_path / f"{key(einsum, 'oro+')}.json"
    path.write_text(broken)
    assert cached(einsum, "oro+", tmp_path) == oro_plus(einsum)
    cached(einsum, "oro+", tmp_path)
    assert len(worked_out) == 1


def test_bytes_that_are_no_text_are_written_anew(tmp_path: Path) -> None:
    einsum = parse_einsum(CONV, EXTENTS)
    (tmp_path / f"{key(einsum, 'oro+')}.json").write_bytes(b"\xff\xfe\x00")
    assert cached(einsum, "oro+", tmp_path) == oro_plus(einsum)


def test_a_cache_that_cannot_be_used_is_done_without(tmp_path: Path) -> None:
    einsum = parse_einsum(CONV, EXTENTS)
    file = tmp_path / "file"
    file.write_text("no folder")
    assert cached(einsum, "oro+", file / "bounds") == oro_plus(einsum)
    path = tmp_path / f"{key(einsum, 'oro+')}.json"
    path.mkdir()
    assert cached(einsum, "oro+", tmp_path) == oro_plus(einsum)


def test_a_read_only_cache_is_done_without(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "replace", refuse)
    einsum = parse_einsum(CONV, EXTENTS)
    assert cached(einsum, "oro+", tmp_path) == oro_plus(einsum)
    assert not list(tmp_path.iterdir())


def test_curves_lie_in_the_cache_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    einsum = parse_einsum(CONV, EXTENTS)
    cached(einsum)
    assert [path.name for path in (tmp_path / "tilec" / "bounds").iterdir()] == [f"{key(einsum, 'oro+')}.json"]


def test_what_cannot_be_counted_leaves_no_file(tmp_path: Path) -> None:
    extents = dict.fromkeys("mnk", 2**20)
    with pytest.raises(UnsupportedError):
        cached(parse_einsum("C[m,n] = sum(k, A[m,k] * B[k,n])", extents), "oro+", tmp_path)
    assert not list(tmp_path.iterdir())
