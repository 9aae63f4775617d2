"""One compiled model at many sizes."""

import threading

import numpy as np
import pytest

from tests.cpu_models import chain_reference, sized_chain, write_model
from tilec.errors import UsageError
from tilec.runtime import load

SIZES = ((1, 1), (2, 7), (8, 3), (9, 5), (40, 33), (3, 200), (64, 64), (5, 1), (7, 40), (100, 2), (12, 12), (33, 17))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sized")
    limits = (("batch * seq <= 100000", "Reshape_7"), ("seq % 8 != 6", ""))
    write_model(folder, sized_chain(7, repeat=3, batch=(0, 500), constraints=limits))
    return folder


def feeds(batch, seq, seed=0):
    x = np.random.default_rng(seed).standard_normal((batch, seq), np.float32)
    return {"x": x, "also": np.zeros((seq, seq + 1, 2), np.float32)}


@pytest.mark.feature("B01")
@pytest.mark.parametrize("threads", [1, 3])
def test_a_model_runs_at_any_size(folder, threads):
    session = load(folder, threads=threads)
    for batch, seq in (*SIZES, *SIZES[::-1]):
        given = feeds(batch, seq)
        np.testing.assert_array_equal(session.run(given)["y"], chain_reference(given["x"], 7))


@pytest.mark.parametrize("size", [(0, 5), (5, 0), (0, 0)])
def test_empty_sizes_run(folder, size):
    assert load(folder).run(feeds(*size))["y"].shape == size


def test_the_callers_array_is_written(folder):
    session = load(folder)
    for batch, seq in SIZES[:4]:
        given, y = feeds(batch, seq), np.empty((batch, seq), np.float32)
        assert session.run(given, {"y": y})["y"] is y
        np.testing.assert_array_equal(y, chain_reference(given["x"], 7))
    with pytest.raises(UsageError, match=r"output 'y' has shape \[2, 7\], the model has \[3, 7\]"):
        session.run(feeds(3, 7), {"y": np.empty((2, 7), np.float32)})


def test_specs_tell_symbols(folder):
    session = load(folder)
    shapes = [("batch", "seq"), ("seq", "seq + 1", 2), ("batch", "seq")]
    assert [spec.shape for spec in session.inputs + session.outputs] == shapes


@pytest.mark.feature("B22")
def test_callers_with_sizes_of_their_own(folder):
    """Eight at a time: each has its own arena, and as many as there are callers are kept."""
    session = load(folder, threads=2)
    wrong = []

    def call(number):
        for step in range(30):
            given = feeds(*SIZES[(number + step) % len(SIZES)], seed=number)
            if not np.array_equal(session.run(given)["y"], chain_reference(given["x"], 7)):
                wrong.append((number, step))

    callers = [threading.Thread(target=call, args=(n,)) for n in range(8)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert wrong == []
    _, waiting = session._executor._process()
    assert len(waiting) <= 8
    largest = max(-(-4 * batch * seq // 64) * 128 for batch, seq in SIZES)
    assert all(run._memory.arenas[0].size <= largest * 3 // 2 for run in waiting)


def test_memory_of_a_run_only_grows_and_by_half_at_most(folder):
    session = load(folder, threads=1)
    sizes, replaced = [], 0
    for seq in [seq for seq in range(1, 200) if seq % 8 != 6]:
        session.run(feeds(50, seq))
        (run,) = session._executor._process()[1]
        need = -(-4 * 50 * seq // 64) * 128
        assert need <= run._memory.arenas[0].size <= need * 3 // 2
        sizes.append(run._memory.arenas[0].size)
    replaced = len(set(sizes))
    assert sizes == sorted(sizes)
    assert replaced < 20
    session.run(feeds(1, 1))
    assert run._memory.arenas[0].size == sizes[-1]


def test_memory_for_the_largest_sizes_is_reserved_at_once(tmp_path):
    """What earlier sizes have written to stays where it is."""
    write_model(tmp_path, sized_chain(7, repeat=3, batch=(0, 500), seq=(0, 200)))
    session = load(tmp_path, threads=1)
    for batch, seq in SIZES:
        session.run(feeds(batch, seq))
        (run,) = session._executor._process()[1]
        assert run._memory.arenas[0].size == 4 * 500 * 200 * 2


def test_working_memory_grows_with_the_sizes(folder):
    session = load(folder, threads=1)
    strides = []
    for seq in (1, 7, 40, 300, 5, 301, 451):
        given = feeds(9, seq)
        np.testing.assert_array_equal(session.run(given)["y"], chain_reference(given["x"], 7))
        (run,) = session._executor._process()[1]
        assert run._scratch.size == run._stride
        strides.append(run._stride)
    assert strides == [64, 64, 192, 1216, 1216, 1216, 1856]


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        ({"x": np.zeros(3, "f4")}, r"input 'x' has shape \[3\], the model has \[batch, seq\]"),
        (
            {"also": np.zeros((7, 8, 3), "f4")},
            r"input 'also' has shape \[7, 8, 3\], the model has \[seq, seq \+ 1, 2\]",
        ),
        (
            {"x": np.zeros((501, 7), "f4")},
            r"'x' has 501 along dimension 0, the model takes 0 to 500 for batch \(recipe\)",
        ),
        (
            {"also": np.zeros((6, 8, 2), "f4")},
            r"input 'also' has 6 along dimension 0, input 'x' has 7 along dimension 1: both are seq",
        ),
        (
            {"also": np.zeros((7, 9, 2), "f4")},
            r"'also' has 9 along dimension 1, the model has seq \+ 1 = 8 there: input 'x' has 7 along dimension 1",
        ),
        (
            {"x": np.zeros((500, 300), "f4"), "also": np.zeros((300, 301, 2), "f4")},
            r"demands batch \* seq <= 100000 \(Reshape_7\): input 'x' has 500 along dimension 0, "
            r"input 'x' has 300 along dimension 1",
        ),
        (
            {"x": np.zeros((5, 14), "f4"), "also": np.zeros((14, 15, 2), "f4")},
            r"demands seq % 8 != 6: input 'x' has 14",
        ),
        ({"x": np.zeros((5, 7))}, r"'x' has element type float64"),
    ],
)
def test_sizes_that_do_not_fit_are_explained(folder, edit, message):
    session = load(folder)
    with pytest.raises(UsageError, match=message):
        session.run({**feeds(5, 7), **edit})
    given = feeds(5, 7)
    np.testing.assert_array_equal(session.run(given)["y"], chain_reference(given["x"], 7))


def test_a_missing_input_is_named_with_its_symbols(folder):
    with pytest.raises(UsageError, match=r"input 'also' is missing\n  It is float32\[seq, seq \+ 1, 2\]"):
        load(folder).run({"x": np.zeros((2, 7), "f4")})


def test_numbers_of_the_last_sizes_are_kept(folder, monkeypatch):
    session = load(folder, threads=1)
    made = []
    at = session._sized_calls.at
    monkeypatch.setattr(session._sized_calls, "at", lambda shapes: made.append(shapes) or at(shapes))
    for batch in range(70):
        given = feeds(batch, 3)
        np.testing.assert_array_equal(session.run(given)["y"], chain_reference(given["x"], 7))
    assert (len(made), len(session._array_calls)) == (70, 70 - 64)
    session.run(feeds(69, 3))
    assert len(made) == 70
    session.run(feeds(0, 3))
    assert len(made) == 71
    assert session._reader._bound.cache_info().misses == 0, "nothing but a call that fits was made"


def test_only_the_variant_of_a_size_is_traced_and_stepped(folder):
    session = load(folder, threads=1)

    class Groups(list):
        def before(self, group, memory):
            self.append(group)

        def after(self, group, memory):
            pass

    for batch in (2, 3, 40):
        spans = session.traced(feeds(batch, 9))
        assert [span.name for span in spans] == [f"group {k}" for k in range(7)]
        groups = Groups()
        session.stepwise(feeds(batch, 9), groups)
        assert groups == [f"group {k}" for k in range(7)]
    assert session.traced(feeds(0, 9)) == ()
