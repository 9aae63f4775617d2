"""What counts as the cache's and what does not; sizes, ages, removal."""

import os

import pytest

from tilec.errors import UsageError
from tilec.report.cache_listing import KINDS, entries, remove, require_kinds, total, without_shared

NOW = 2_000_000_000.0
A, B = "a" * 32, "b" * 32
PLACES = {
    "sessions": f"sessions/{A}/3-kernels.json",
    "weights": f"weights/{A}{A}",
    "models": f"models/{A}/model.onnx",
    "structures": f"structures/{A}",
    "graphs": f"graphs/{A}",
    "queue": f"queue/host/3-{A}.json",
    "digests": f"digests/{A}",
    "objects": "objects/tilec_add_00ff-0123456789abcdef.o",
    "searches": "searches/0123456789abcdef01234567-0123456789abcdef.json",
    "bounds": f"bounds/{A}.json",
    "zoo": "zoo/0123456789ab/x.onnx",
    "host": "host-0123456789abcdef.yaml",
    "leftovers": f"sessions/{B}.tmp/file",
}
FOREIGN = [
    "mine.txt",
    "photos/cat.png",
    "sessions/notes.txt",
    f"sessions/{A}.lock",
    "objects/mine.o",
    f"bounds/{A}.txt",
    "zoo/readme.md",
    f"digests/{B}/file",
    f"models/{B}",
]


def put(root, place, size=10, age=2 * 86400.0):
    path = root / place
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(bytes(size))
    for each in (path, path.parent):
        if each != root:
            os.utime(each, (NOW - age, NOW - age))
    return path


@pytest.fixture
def root(tmp_path):
    for place in (*PLACES.values(), *FOREIGN):
        put(tmp_path, place)
    return tmp_path


def files(root):
    return {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}


def test_every_kind_is_found_and_nothing_else(root):
    found = list(entries(root, KINDS, NOW))
    assert [entry.kind for entry in found] == list(KINDS)
    for entry in found:
        assert PLACES[entry.kind].startswith(str(entry.path.relative_to(root)))
        assert (entry.size, entry.age(NOW)) == (10, 2 * 86400.0)
    assert [entry.kind for entry in entries(root, ("zoo", "host"), NOW)] == ["zoo", "host"]


def test_removing_everything_leaves_what_is_foreign(root):
    for entry in entries(root, KINDS, NOW):
        assert remove(entry)
    assert files(root) == set(FOREIGN)


def test_what_is_being_made_is_no_leftover(tmp_path):
    put(tmp_path, f"sessions/{A}.tmp/file", age=60.0)
    put(tmp_path, f"objects/.x.o.{A[:8]}.tmp", age=60.0)
    assert not list(entries(tmp_path, KINDS, NOW))
    assert len(list(entries(tmp_path, KINDS, NOW + 86400))) == 2


def test_links_are_not_followed(tmp_path):
    put(tmp_path, "elsewhere/model.onnx", size=1000)
    put(tmp_path, f"cache/sessions/{A}/kernels")
    (tmp_path / f"cache/sessions/{A}/model.onnx").symlink_to(tmp_path / "elsewhere/model.onnx")
    (tmp_path / f"cache/sessions/{B}").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "cache/bounds").symlink_to(tmp_path / "elsewhere")
    (entry,) = entries(tmp_path / "cache", KINDS, NOW)
    assert entry.size < 1000
    assert remove(entry)
    assert (tmp_path / "elsewhere/model.onnx").stat().st_size == 1000
    assert (tmp_path / f"cache/sessions/{B}").is_symlink()


def test_equal_weights_count_once(tmp_path):
    weights = put(tmp_path, f"weights/{A}{A}", size=500)
    folder = put(tmp_path, f"sessions/{A}/kernels", size=10).parent
    os.link(weights, folder / "weights.bin")
    found = list(entries(tmp_path, KINDS, NOW))
    assert [entry.size for entry in found] == [510, 500]
    assert total(found) == 510


def test_weights_stay_while_a_session_has_them(tmp_path):
    used, unused = put(tmp_path, f"weights/{A}{A}"), put(tmp_path, f"weights/{B}{B}")
    folder = put(tmp_path, f"sessions/{A}/kernels").parent
    os.link(used, folder / "weights.bin")
    sessions, weights = (list(entries(tmp_path, (kind,), NOW)) for kind in ("sessions", "weights"))
    assert [entry.path for entry in without_shared(weights, sessions)] == [unused]
    assert without_shared([*sessions, *weights], sessions) == [*sessions, *weights]


def test_no_cache_is_empty(tmp_path):
    assert not list(entries(tmp_path / "none", KINDS))
    assert total([]) == 0


def test_an_entry_that_is_gone_is_removed(root):
    found = list(entries(root, KINDS, NOW))
    assert all(remove(entry) for entry in found)
    assert all(remove(entry) for entry in found)


def test_unknown_kinds():
    assert require_kinds(()) == tuple(KINDS)
    assert require_kinds(["zoo"]) == ("zoo",)
    with pytest.raises(UsageError, match="Did you mean 'sessions'?"):
        require_kinds(["session"])
