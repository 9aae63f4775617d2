"""Counts of sizes as a file: merged, bounded, read with care, and what is likely."""

import pytest

from tilec.api import size_counts
from tilec.api.size_counts import SizeCount, SizeCounts, counts_text, known_counts, merged, read_counts
from tilec.errors import ArtifactError, UsageError


def counts(*entries, calls=None):
    each = tuple(SizeCount({"batch": batch, "seq": seq}, number) for batch, seq, number in entries)
    return SizeCounts(calls if calls is not None else sum(entry.calls for entry in each), each)


def test_counts_are_added_and_the_most_frequent_come_first():
    both = merged(counts((1, 8, 3), (1, 9, 4)), counts((1, 8, 5), (2, 8, 1)))
    assert both == counts((1, 8, 8), (1, 9, 4), (2, 8, 1))
    assert merged(SizeCounts(), both) == both


def test_the_rare_are_left_out_and_the_old_fade(monkeypatch):
    many = merged(counts(*((1, seq, seq) for seq in range(1, 101))), SizeCounts())
    assert len(many.counts) == size_counts.MOST
    assert many.counts[0].calls == 100
    assert many.calls == 5050
    monkeypatch.setattr(size_counts, "LARGEST_TOTAL", 10)
    assert merged(counts((1, 8, 8), (1, 9, 1)), counts((1, 8, 1))) == counts((1, 8, 4), calls=5)


def test_likely_sizes_belong_together_and_have_their_share():
    found = counts((1, 128, 60), (4, 128, 30), (1, 64, 6), (1, 7, 4)).likely()
    assert found == {"batch": [1, 4, 1], "seq": [128, 128, 64]}
    assert len(counts(*((1, seq, 10) for seq in range(8))).likely()["seq"]) == size_counts.LIKELY
    assert SizeCounts().likely() == {}


def test_the_file_and_what_is_none(tmp_path):
    path = tmp_path / "sizes.json"
    assert known_counts(path) == SizeCounts()
    with pytest.raises(UsageError, match="no such file\n  Sessions write it"):
        read_counts(path)
    written = counts((1, 128, 60), calls=99)
    path.write_text(counts_text(written))
    assert read_counts(path) == known_counts(path) == written
    path.write_text("soup")
    with pytest.raises(UsageError, match="this is no file of counted sizes"):
        read_counts(path)
    path.write_text('{"calls": "many"}')
    with pytest.raises(ArtifactError):
        read_counts(path)
    assert known_counts(path) == SizeCounts()
