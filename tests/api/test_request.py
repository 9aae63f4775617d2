"""Keys of compiled models name content alone: a cache that is shared serves all who have the same models."""

from dataclasses import replace

import pytest

from tilec.api import worker
from tilec.api.request import Request, keyed

REQUEST = Request("/home/one/model.onnx", "0" * 64, "avx2", "/home/one/.cache/tilec", weights={"w.bin": "1" * 64})


def test_a_key_has_no_place_and_no_user(tmp_path, monkeypatch):
    key = keyed(REQUEST).key
    monkeypatch.chdir(tmp_path)
    for name in ("HOME", "USER", "LOGNAME", "HOSTNAME", "XDG_CACHE_HOME", "TMPDIR", "TILEC_RECORD"):
        monkeypatch.setenv(name, str(tmp_path / "other"))
    monkeypatch.setattr("platform.node", lambda: "another-machine")
    assert keyed(replace(REQUEST, model=str(tmp_path / "renamed.onnx"), cache=str(tmp_path))).key == key


def test_a_record_counts_by_what_it_holds(tmp_path, monkeypatch):
    keys = []
    for name, text in (("one", "a"), ("two", "a"), ("three", "b")):
        (tmp_path / name).write_text(text)
        monkeypatch.setenv("TILEC_SCHEDULE_RECORD", str(tmp_path / name))
        keys.append(keyed(REQUEST).key)
    assert keys[0] == keys[1] != keys[2]


@pytest.mark.parametrize(
    "other",
    [
        {"sha256": "2" * 64},
        {"weights": {"w.bin": "2" * 64}},
        {"device": "zen5-avx512"},
        {"sizes": {"n": 1}},
        {"ranges": {"n": (1, 2, 1)}},
    ],
)
def test_what_the_code_depends_on_is_in_the_key(other):
    assert keyed(replace(REQUEST, **other)).key != keyed(REQUEST).key


def test_variables_that_choose_code_are_in_the_key(monkeypatch):
    key = keyed(REQUEST).key
    monkeypatch.setenv("TILEC_SCHEDULE_FUSION", "none")
    assert keyed(REQUEST).key != key


@pytest.mark.parametrize(("rooms", "state"), [(False, "same-shape"), (True, "in-place")])
def test_a_session_has_the_inputs_of_its_model(tmp_path, monkeypatch, rooms, state):
    (tmp_path / "m.onnx").write_bytes(b"")
    request = replace(
        REQUEST, model=str(tmp_path / "m.onnx"), cache=str(tmp_path), recipe="language-model", rooms=rooms
    )
    assert worker._job(request, lambda *_: None).recipe.state == state
    assert keyed(request).key != keyed(replace(request, rooms=not rooms)).key
