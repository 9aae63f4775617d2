"""The cache shares equal weights and stays within its limit."""

import os

import numpy as np
import pytest

import tilec
from api import models
from tilec.api.cache import Cache
from tilec.api.cache_eviction import limit_bytes, prune, share
from tilec.errors import ConfigError


def weighty(value=1.0):
    """y = x @ w with a weight of 256 KiB and a symbolic batch."""
    from onnx import helper

    weight = models.constant("w", np.full((256, 256), value, np.float32))
    ports = [models.value("x", "batch", 256)], [models.value("y", "batch", 256)]
    return models.model([helper.make_node("MatMul", ["x", "w"], ["y"])], *ports, [weight]).SerializeToString()


def run(cache, batch, value=1.0):
    session = tilec.InferenceSession(weighty(value), cache=cache, sizes={"batch": batch})
    assert (session.run(None, {"x": np.ones((batch, 256), np.float32)})[0] == 256 * value).all()


def entries(cache):
    return sorted((path for path in (cache / "sessions").iterdir() if path.is_dir()), key=lambda p: p.stat().st_mtime)


def test_equal_weights_of_two_sizes_are_one_file(tmp_path):
    run(tmp_path, 16)
    run(tmp_path, 32)
    one, two = (next(folder.glob("weights-*.safetensors")) for folder in entries(tmp_path))
    assert one.samefile(two)
    assert len(list((tmp_path / "weights").iterdir())) == 1


def test_what_was_used_least_recently_goes_first(tmp_path, monkeypatch):
    monkeypatch.setenv("TILEC_CACHE_LIMIT", "1300KiB")
    for age, value in enumerate((1.0, 2.0)):
        run(tmp_path, 16, value)
        for folder in (*tmp_path.glob("models/*"), *entries(tmp_path)):
            if folder.stat().st_mtime > 1e9:
                os.utime(folder, (age, age))
    first, second = entries(tmp_path)
    run(tmp_path, 16, 1.0)  # used again
    run(tmp_path, 16, 3.0)
    assert first.is_dir()
    assert not second.exists()
    assert len(list((tmp_path / "weights").iterdir())) == 2
    run(tmp_path, 16, 2.0)


def test_the_newest_stays_however_large_it_is(tmp_path, monkeypatch):
    monkeypatch.setenv("TILEC_CACHE_LIMIT", "1KiB")
    run(tmp_path, 16)
    assert len(entries(tmp_path)) == 1
    prune(Cache(tmp_path), ())
    assert not entries(tmp_path)
    assert not list((tmp_path / "weights").iterdir())


def test_a_wrong_limit_is_told(tmp_path, monkeypatch):
    assert limit_bytes() == 20 * 2**30
    monkeypatch.setenv("TILEC_CACHE_LIMIT", "lots")
    with pytest.raises(ConfigError, match="TILEC_CACHE_LIMIT: 'lots' is not a number with a unit"):
        tilec.InferenceSession(models.affine().SerializeToString(), cache=tmp_path)


def test_where_there_are_no_hard_links_weights_stay_where_they_are(tmp_path, monkeypatch):
    def link(*_):
        raise OSError("no links here")

    monkeypatch.setattr("tilec.api.cache_eviction.os.link", link)
    (tmp_path / "w").write_bytes(bytes(1 << 17))
    share(tmp_path, [{"file": "w", "bytes": 1 << 17, "sha256": "0" * 64}], Cache(tmp_path / "cache"))
    assert (tmp_path / "w").read_bytes() == bytes(1 << 17)


def compiled(cache, name, age, weights):
    """A compiled model of 1 KiB beside its weights, used last at a time."""
    folder = cache / "sessions" / name
    folder.mkdir(parents=True)
    (folder / "kernels").write_bytes(bytes(1 << 10))
    os.link(weights, folder / "weights")
    os.utime(folder, (age, age))
    return folder


def test_weights_that_models_share_count_once(tmp_path, monkeypatch):
    (tmp_path / "w").write_bytes(bytes(100 << 10))
    folders = [compiled(tmp_path, name, 9 - n, tmp_path / "w") for n, name in enumerate("abc")]
    monkeypatch.setenv("TILEC_CACHE_LIMIT", "103KiB")
    prune(Cache(tmp_path), ())
    assert [folder.is_dir() for folder in folders] == [True, True, True]
    monkeypatch.setenv("TILEC_CACHE_LIMIT", "102KiB")
    prune(Cache(tmp_path), ())
    assert [folder.is_dir() for folder in folders] == [True, True, False], "c was used longest ago"
    prune(Cache(tmp_path), (folders[1],))
    monkeypatch.setenv("TILEC_CACHE_LIMIT", "101KiB")
    prune(Cache(tmp_path), (folders[1],))
    assert [folder.is_dir() for folder in folders] == [False, True, False], "b is kept whatever its age"
