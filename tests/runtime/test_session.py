import threading
import time
import weakref
from dataclasses import replace

import numpy as np
import pytest

from tests.cpu_models import chain, chain_reference, rows, tensor, whole, write_manifest, write_model
from tilec.abi.manifest import Constant, Segment, WeightsFile
from tilec.codegen.launch_table import Launch
from tilec.codegen.model import Model
from tilec.errors import ArtifactError, UnavailableError, UsageError
from tilec.runtime import load


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("chain")
    write_model(folder, chain(12, 32, 40, repeat=20))
    return folder


@pytest.fixture
def x():
    return np.random.default_rng(1).standard_normal((32, 40), np.float32)


def test_fresh_outputs_are_aligned_and_independent(folder, x):
    session = load(folder)
    first = session.run({"x": x})["y"]
    second = session.run({"x": x + 1})["y"]
    assert first.ctypes.data % 64 == 0
    np.testing.assert_array_equal(first, chain_reference(x, 12))
    np.testing.assert_array_equal(second, chain_reference(x + 1, 12))


def test_out_is_written_and_returned(folder, x):
    session = load(folder)
    expected = chain_reference(x, 12)
    for given in (
        np.empty_like(x),
        np.empty_like(x.T).T,
        np.empty((64, 80), "f4")[::2, ::-2],
        np.empty(x.shape, ">f4"),
    ):
        assert session.run({"x": x}, {"y": given})["y"] is given
        np.testing.assert_array_equal(given, expected)


def test_out_may_be_the_input(folder, x):
    expected = chain_reference(x, 12)
    load(folder).run({"x": x}, {"y": x})
    np.testing.assert_array_equal(x, expected)


def test_specs_tell_what_run_expects(folder):
    session = load(folder)
    assert [(t.name, t.ttype, t.shape) for t in session.inputs + session.outputs] == [
        ("x", "f32", (32, 40)),
        ("y", "f32", (32, 40)),
    ]


def test_any_layout_gives_the_same_bits(folder, x):
    session = load(folder)
    expected = session.run({"x": x})["y"]
    for given in (np.asfortranarray(x), x[::-1].copy()[::-1], x.astype(">f4")):
        np.testing.assert_array_equal(session.run({"x": given})["y"], expected)


def test_constants_come_from_mapped_files(tmp_path):
    weights = np.arange(24, dtype=np.float32)
    weights.tofile(tmp_path / "w.bin")
    add = rows("add", 4, 3, lambda read, t, j: read(0, t, j) + read(1, t, j), operands=3)
    launch = Launch("add", (whole("input", 48), whole("constant", 48, 1), whole("output", 48, writes=True)), 4)
    model = Model(
        {"add": add},
        (launch,),
        (tensor("x", 4, 3),),
        (tensor("y", 4, 3),),
        weights=(WeightsFile("w.bin", 96, "-"),),
        constants=(Constant(0, 0, 48), Constant(0, 48, 48)),
    )
    write_model(tmp_path, model)
    x = np.ones((4, 3), np.float32)
    np.testing.assert_array_equal(load(tmp_path).run({"x": x})["y"], 1 + weights[12:].reshape(4, 3))
    with pytest.raises(ArtifactError, match="not those that were compiled"):
        load(tmp_path, check=True)


def test_a_run_is_taken_by_one_caller(folder, x):
    """Runs that wait for a caller are handed out once each: two calls at a time never share working memory.

    It stands before the test of concurrent calls, which would hang instead of failing.
    """
    session = load(folder)
    session.run({"x": x})
    executor = session._executor
    first = executor.take_run()
    second = executor.take_run()
    assert first is not second
    executor.give_run(first)
    executor.give_run(second)
    taken = [executor.take_run() for _ in range(3)]
    assert len({id(run) for run in taken}) == 3


@pytest.mark.feature("B22")
def test_concurrent_calls_have_arenas_of_their_own(folder, x):
    session = load(folder, threads=2)
    expected = [chain_reference(x + i, 12) for i in range(8)]
    equal = []

    def call(i):
        equal.extend(np.array_equal(session.run({"x": x + i})["y"], expected[i]) for _ in range(60))

    callers = [threading.Thread(target=call, args=(i,)) for i in range(8)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert equal == [True] * 480


@pytest.mark.feature("B22")
@pytest.mark.parametrize("runs", [0, 1], ids=["the first", "a later"])
def test_a_run_that_fails_leaves_its_session_as_it_was(folder, x, runs):
    """Its working memory is given back, for the next call."""
    session = load(folder)
    executor, fails = session._executor, []
    library = executor._library

    def job(place):
        if fails:
            raise RuntimeError
        library.run(place)

    executor._library = replace(library, run=job)
    memory = executor.take_run()
    executor.give_run(memory)
    for _ in range(runs):
        session.run({"x": x})
    fails.append(True)
    with pytest.raises(RuntimeError):
        session.run({"x": -x})
    fails.clear()
    np.testing.assert_array_equal(session.run({"x": x})["y"], chain_reference(x, 12))
    while not memory.idle:
        time.sleep(0)
    assert executor.take_run() is memory


def test_sessions_come_and_go_while_others_run(folder, x):
    """Job blocks and code of a dropped session must outlive the helpers that still look at them."""
    expected = chain_reference(x, 12)
    for _ in range(60):
        session = load(folder, threads=3)
        np.testing.assert_array_equal(session.run({"x": x})["y"], expected)
        dropped = weakref.ref(session)
        del session
        assert dropped() is None


def test_a_failed_check_leaves_the_session_usable(folder, x):
    session = load(folder)
    with pytest.raises(UsageError, match="missing"):
        session.run({})
    np.testing.assert_array_equal(session.run({"x": x})["y"], chain_reference(x, 12))


def test_zero_size_tensors_run(tmp_path):
    copy = rows("copy", 0, 3, lambda read, t, j: read(0, t, j))
    model = Model(
        {"copy": copy},
        (Launch("copy", (whole("input", 0), whole("output", 0, writes=True)), 0),),
        (tensor("x", 0, 3),),
        (tensor("y", 0, 3),),
    )
    write_model(tmp_path, model)
    assert load(tmp_path).run({"x": np.zeros((0, 3), "f4")})["y"].shape == (0, 3)


def test_another_library_is_refused(folder, tmp_path):
    manifest = write_model(tmp_path, chain(2, 4, 4))
    write_manifest(tmp_path, replace(manifest, library=replace(manifest.library, sha256="0" * 64)))
    with pytest.raises(ArtifactError, match="not the one that was compiled"):
        load(tmp_path)
    (tmp_path / manifest.library.file).unlink()
    with pytest.raises(ArtifactError, match="cannot read the library"):
        load(tmp_path)


@pytest.mark.parametrize(
    "edit",
    [
        {"arena_bytes": 0},
        {"scratch_bytes": 64},
        {"inputs": (tensor("x", 1, 4),)},
        {"outputs": (tensor("y", 4, 4), tensor("z", 4))},
        {"segments": (Segment(("a", "b", "c"), 4),)},
    ],
)
def test_numbers_that_the_code_does_not_rely_on_are_refused(tmp_path, edit):
    """With a smaller arena or another shape native code would touch memory that is not there."""
    manifest = write_model(tmp_path, chain(2, 4, 4))
    load(tmp_path)
    write_manifest(tmp_path, replace(manifest, **edit))
    with pytest.raises(ArtifactError, match="not the one that the library was compiled for"):
        load(tmp_path)


def test_a_library_that_lacks_a_symbol_is_refused(tmp_path):
    launch = Launch("absent", (whole("input", 16), whole("output", 16, writes=True)), 1)
    write_model(tmp_path, Model({}, (launch,), (tensor("x", 4),), (tensor("y", 4),)))
    with pytest.raises(ArtifactError, match="cannot be linked"):
        load(tmp_path)


def test_threads_are_chosen_by_argument_then_variable_then_model(tmp_path, monkeypatch):
    write_model(tmp_path, replace(chain(2, 4, 4), threads=1))
    monkeypatch.delenv("TILEC_THREADS", raising=False)
    assert load(tmp_path).threads == 1
    monkeypatch.setenv("TILEC_THREADS", "3")
    assert load(tmp_path).threads == 3
    assert load(tmp_path, threads=2).threads == 2
    monkeypatch.setenv("TILEC_THREADS", "many")
    with pytest.raises(UsageError, match="TILEC_THREADS is 'many'"):
        load(tmp_path)
    with pytest.raises(UsageError, match="0 threads"):
        load(tmp_path, threads=0)


def test_a_loader_that_is_not_installed_is_named(folder, tmp_path):
    model = chain(1, 4, 8)
    write_manifest(tmp_path, replace(write_model(tmp_path, model), loader="no_such_package.runtime:load"))
    with pytest.raises(UnavailableError, match="no_such_package"):
        load(tmp_path)
    write_manifest(tmp_path, replace(write_model(tmp_path, model), loader="tilec.runtime.memory:no_loader"))
    with pytest.raises(ArtifactError, match="no loader 'no_loader'"):
        load(tmp_path)
