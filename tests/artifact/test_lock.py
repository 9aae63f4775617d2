"""Only one process at a time holds a lock, whether the file stays or goes."""

import subprocess
import sys
from pathlib import Path

import pytest

from tilec.artifact import locked

ADD = """
import sys, time
from pathlib import Path
from tilec.artifact import locked
path, remove = Path(sys.argv[1]), sys.argv[2] == "remove"
for _ in range(40):
    with locked(path.with_suffix(".lock")):
        number = int(path.read_text())
        time.sleep(0.0005)
        path.write_text(str(number + 1))
        if remove:
            path.with_suffix(".lock").unlink()
"""


@pytest.mark.parametrize("habit", ["keep", "remove"])
def test_processes_take_turns(tmp_path: Path, habit: str) -> None:
    (tmp_path / "number").write_text("0")
    command = [sys.executable, "-c", ADD, str(tmp_path / "number"), habit]
    running = [subprocess.Popen(command, env={"PYTHONPATH": ":".join(sys.path)}) for _ in range(3)]
    assert [process.wait(timeout=60) for process in running] == [0, 0, 0]
    assert (tmp_path / "number").read_text() == "120"
    assert (tmp_path / "number.lock").exists() == (habit == "keep")


def test_an_error_gives_the_lock_back(tmp_path: Path) -> None:
    with pytest.raises(KeyError), locked(tmp_path / "a" / "lock"):
        raise KeyError
    with locked(tmp_path / "a" / "lock"):
        pass
