"""One compilation for all sizes: when there is one, when there are more, and what is said."""

import threading
import warnings

import numpy as np
import pytest

import tilec
from api import models
from api.stand_ins import Compiler, feeds
from tilec.api.any_size import Attempt
from tilec.api.cache import Cache
from tilec.api.model_source import open_model, request_for
from tilec.api.request import keyed
from tilec.errors import TilecError, UsageError

DATA = models.two_inputs().SerializeToString()


@pytest.fixture
def compiler(monkeypatch):
    return Compiler(monkeypatch)


def product(session, batch):
    result = session.run(["p"], feeds(batch))[0]
    assert result.shape == (batch, 4)
    assert (result == 6).all()


def test_a_model_is_compiled_once_for_all_sizes(tmp_path, compiler):
    session = tilec.InferenceSession(DATA, cache=tmp_path)
    for batch in (1, 7, 3, 0, 512):
        product(session, batch)
    assert compiler.sizes == [{}]
    assert len(compiler.loaded) == 1
    assert len(session._model._dispatch._made) == 1


def test_the_key_holds_no_size_unless_one_is_bound(tmp_path, compiler):
    tilec.InferenceSession(DATA, cache=tmp_path)
    tilec.InferenceSession(DATA, cache=tmp_path)
    bound = tilec.InferenceSession(DATA, cache=tmp_path, sizes={"batch": 2})
    options = tilec.SessionOptions()
    options.add_free_dimension_override_by_name("batch", 2)
    tilec.InferenceSession(DATA, options, cache=tmp_path)
    assert compiler.sizes == [{}, {"batch": 2}]
    assert [arg.shape for arg in bound.get_inputs()] == [[2, 4], [2, 4]]
    product(bound, 2)
    with pytest.raises(tilec.FeedError, match="input 'a' has size 3 along dimension 0, expected was 2"):
        product(bound, 3)


@pytest.mark.parametrize(
    ("sizes", "said"),
    [
        ({"bacth": 2}, "sizes: the model has no size 'bacth'\n  Did you mean 'batch'?"),
        ({"q": 2}, "sizes: the model has no size 'q'\n  The sizes of its inputs are batch."),
        ({"batch": -1}, "sizes: a size is a number from 0 on, or (least, largest): batch=-1"),
        ({"batch": "2"}, "sizes: a size is a number from 0 on, or (least, largest): batch='2'"),
        ({"batch": (3, 2)}, "sizes: a size is a number from 0 on, or (least, largest): batch=(3, 2)"),
    ],
)
def test_sizes_that_are_none(tmp_path, compiler, sizes, said):
    with pytest.raises(UsageError) as caught:
        tilec.InferenceSession(DATA, cache=tmp_path, sizes=sizes)
    assert str(caught.value) == said
    assert not compiler.requests


def test_ranges_limit_the_sizes_and_are_part_of_the_key(tmp_path, compiler):
    tilec.InferenceSession(DATA, cache=tmp_path)
    for _ in range(2):
        session = tilec.InferenceSession(DATA, cache=tmp_path, sizes={"batch": (1, 16)})
        product(session, 7)
    tilec.InferenceSession(DATA, cache=tmp_path, sizes={"batch": (2, None, 2)})
    assert compiler.sizes == [{}, {}, {}]
    assert [request.ranges for request in compiler.requests] == [{}, {"batch": (1, 16, 1)}, {"batch": (2, None, 2)}]
    assert [arg.shape for arg in session.get_inputs()] == [["batch", 4], ["batch", 4]]


def test_a_model_that_needs_its_sizes_is_compiled_for_each(tmp_path, compiler):
    compiler.refuses = ("batch",)
    with pytest.warns(UserWarning, match=r"model.onnx is compiled for each set of sizes anew: the size batch is not"):
        session = tilec.InferenceSession(DATA, cache=tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for batch in (1, 2, 1):
            product(session, batch)
    assert compiler.sizes == [{}, {"batch": 1}, {"batch": 2}]


def test_an_attempt_in_vain_is_remembered(tmp_path, compiler):
    compiler.refuses = ("batch",)
    for _ in range(2):
        tilec.api.warn_once.forget()
        with pytest.warns(UserWarning, match="the size batch is not bound"):
            session = tilec.InferenceSession(DATA, cache=tmp_path)
        product(session, 2)
    assert compiler.sizes == [{}, {"batch": 2}]
    request = request_for(open_model(DATA, tilec.SessionOptions(), Cache(tmp_path)), "host", None, {}, tmp_path)
    assert Attempt(keyed(request)).refusal == "the size batch is not bound"
    request = request_for(open_model(DATA, tilec.SessionOptions(), Cache(tmp_path)), "avx2", None, {}, tmp_path)
    assert Attempt(keyed(request)).refusal is None


def test_other_errors_are_raised_and_the_next_session_tries_again(tmp_path, monkeypatch, compiler):
    def broken(request, threads):
        compiler.requests.append(request)
        raise TilecError("the disk is full")

    monkeypatch.setattr("tilec.api.model_dispatch.load_compiled", broken)
    for _ in range(2):
        with pytest.raises(TilecError, match="the disk is full"):
            tilec.InferenceSession(DATA, cache=tmp_path)
    assert compiler.sizes == [{}, {}]


def test_what_the_runtime_says_of_sizes_reaches_the_caller(tmp_path, compiler):
    compiler.most = 16
    session = tilec.InferenceSession(DATA, cache=tmp_path)
    with pytest.raises(tilec.FeedError) as caught:
        product(session, 17)
    said = "input 'a' has 17 along dimension 0, the model takes 0 to 16 for batch (table)"
    assert isinstance(caught.value, UsageError)
    assert str(caught.value) == said
    mixed = {"a": feeds(2)["a"], "c": feeds(3)["c"]}
    with pytest.raises(tilec.FeedError, match="input 'c' has 3 along dimension 0, input 'a' has 2 along dimension 0"):
        session.run(None, mixed)
    with pytest.raises(tilec.FeedError, match=r"input 'c' has shape \[4\], the model has \[batch, 4\]"):
        session.run(None, {"a": feeds(2)["a"], "c": np.ones(4, np.float32)})
    product(session, 16)
    assert compiler.sizes == [{}]


def test_eight_threads_with_sizes_of_their_own(tmp_path, compiler):
    session, wrong = tilec.InferenceSession(DATA, cache=tmp_path), []

    def work(batch):
        for n in range(batch, batch + 40):
            result = session.run(["s"], feeds(n))[0]
            if result.shape != (n, 4) or not (result == 5).all():
                wrong.append(n)

    threads = [threading.Thread(target=work, args=(batch,)) for batch in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert compiler.sizes == [{}]


def test_threads_that_need_sizes_compile_one_at_a_time(tmp_path, compiler):
    compiler.refuses = ("batch",)
    with pytest.warns(UserWarning, match="anew"):
        session = tilec.InferenceSession(DATA, cache=tmp_path)
    threads = [threading.Thread(target=product, args=(session, batch)) for batch in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(compiler.sizes) == 7
    assert compiler.most_at_once == 1


def test_onnxruntime_serves_while_one_compiler_works(tmp_path, compiler):
    compiler.refuses = ("batch",)
    compiler.gate.clear()
    session = tilec.InferenceSession(DATA, cache=tmp_path, while_compiling="fallback")
    for batch in range(8):
        product(session, batch)
    compiler.gate.set()
    session._model._dispatch.begin((), {}).exception(60)
    assert compiler.sizes == [{}]
    with pytest.warns(UserWarning, match="anew"):
        product(session, 1)
    compiler.gate.clear()
    for batch in range(8):
        product(session, batch)
    compiler.gate.set()
    for batch in range(8):
        assert session._model._dispatch.begin(((batch, 4), (batch, 4)), {}).result(60).sizes == {"batch": batch}
    assert sorted(sizes["batch"] for sizes in compiler.sizes[1:]) == list(range(8))
    assert compiler.most_at_once == 1


def test_onnxruntime_serves_all_sizes_until_one_model_does(tmp_path, compiler):
    compiler.gate.clear()
    session = tilec.InferenceSession(DATA, cache=tmp_path, while_compiling="fallback")
    for batch in (1, 2):
        product(session, batch)
    with pytest.raises(tilec.FeedError, match="input 'c' has size 3 along dimension 0, expected was 2"):
        session.run(None, {"a": feeds(2)["a"], "c": feeds(3)["c"]})
    compiler.gate.set()
    session._model._dispatch.begin((), {}).result(60)
    for batch in (1, 2, 3):
        product(session, batch)
    assert compiler.loaded[0].calls == 3
    assert compiler.sizes == [{}]
    assert not session._model._peers
