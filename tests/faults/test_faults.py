"""A few faults of each case; `make faults` has many."""

import argparse
import os
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.faults import background, kills
from tests.faults.__main__ import AS_ROOT, CASES
from tests.faults.world import World


def test_an_import_that_is_killed_at_a_change_of_a_file_is_done_by_the_next(tmp_path: Path) -> None:
    assert list(kills.at_changes(World(tmp_path), "compile", 16, "import")) == []


@pytest.mark.slow
def test_a_model_whose_compiler_in_the_background_is_killed_is_compiled_by_the_next(tmp_path: Path) -> None:
    assert list(background.at_random(World(tmp_path), 2, 0)) == []


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_faults(case: str) -> None:
    if case in AS_ROOT and os.geteuid() != 0:
        pytest.skip("mounts file systems")
    asked = argparse.Namespace(kills=8, interrupts=10, processes=4, every=12, seed=0)
    with TemporaryDirectory(prefix="tilec-faults-") as folder:  # where other users come, too
        assert list(CASES[case](World(Path(folder)), asked)) == []
