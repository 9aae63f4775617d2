"""Compilers that are started before there is a request."""

import numpy as np

import tilec
from api import models
from tilec.api.compiling import compiler_started


def codes(children):
    """How the compilers ended; asking the system for its name starts processes, too."""
    return [child.returncode for child in children if "tilec.api.worker" in child.args]


def test_the_first_request_takes_a_compiler_that_was_started(tmp_path, children):
    with compiler_started("host"):
        session = tilec.InferenceSession(models.affine().SerializeToString(), cache=tmp_path)
        (result,) = session.run(None, {"x": np.ones((3, 2), np.float32)})
    np.testing.assert_array_equal(result, np.full((3, 2), 3, np.float32))
    assert codes(children) == [0]


def test_a_compiler_that_is_not_needed_is_ended(tmp_path, children):
    with compiler_started("no such device"):
        pass
    assert codes(children) != [None]
    assert len(codes(children)) == 1
