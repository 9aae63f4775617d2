"""TfIdfVectorizer over integers against onnxruntime: lengths, skips, modes, weights, rows."""

from pathlib import Path

import numpy as np
import pytest

from tests.importer.reference import check, single
from tilec.errors import UnsupportedError
from tilec.importer import import_model

POOL = {
    "pool_int64s": [2, 3, 5, 4, 5, 6, 7, 8, 6, 7],
    "ngram_counts": [0, 4],
    "ngram_indexes": [0, 1, 2, 3, 4, 5, 6],
}
TEXT = np.array([[1, 1, 3, 3, 3, 7], [8, 6, 7, 5, 6, 8]], np.int64)


@pytest.mark.parametrize("lengths", [(1, 1), (2, 2), (1, 2)])
@pytest.mark.parametrize("skips", [0, 1, 5])
@pytest.mark.parametrize("mode", ["TF", "IDF", "TFIDF"])
def test_counts(tmp_path: Path, lengths: tuple[int, int], skips: int, mode: str) -> None:
    options = {**POOL, "min_gram_length": lengths[0], "max_gram_length": lengths[1], "max_skip_count": skips}
    weights = [0.5, 1.0, 2.0, 3.0, 1.5, 0.25, 4.0]
    for x in (TEXT, TEXT[1], TEXT.astype(np.int32), TEXT[:, :1]):
        check(tmp_path, "TfIdfVectorizer", x, mode=mode, **options)
        check(tmp_path, "TfIdfVectorizer", x, mode=mode, weights=weights, **options)


def test_places_in_any_order(tmp_path: Path) -> None:
    options = {**POOL, "ngram_indexes": [6, 0, 2, 9, 4, 5, 1]}
    options |= {"min_gram_length": 1, "max_gram_length": 2, "max_skip_count": 2}
    check(tmp_path, "TfIdfVectorizer", TEXT, mode="TF", **options)


def test_shared_places_are_refused(tmp_path: Path) -> None:
    options = {**POOL, "ngram_indexes": [0, 0, 1, 2, 3, 4, 5]}
    options |= {"min_gram_length": 1, "max_gram_length": 2, "max_skip_count": 0}
    path, _ = single(tmp_path, "TfIdfVectorizer", TEXT, mode="TF", **options)
    with pytest.raises(UnsupportedError, match="share a place"):
        import_model(path)
