"""Only one process at a time holds a lock, whether the file stays or goes."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tilec.artifact import folder_locked, locked

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


HOLD = """
import sys
from pathlib import Path
from tilec.artifact import folder_locked
with folder_locked(Path(sys.argv[1]), lambda: print("waits", flush=True)):
    print("in", flush=True)
    sys.stdin.readline()
    if sys.argv[2] == "write":
        (Path(sys.argv[1]) / "file").touch()
"""


@pytest.mark.parametrize("habit", ["leave", "write"])
def test_one_process_at_a_time_is_in_a_folder(tmp_path: Path, habit: str) -> None:
    folder = tmp_path / "a" / "b"
    command = [sys.executable, "-c", HOLD, str(folder), habit]
    options: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with (
        subprocess.Popen(command, env={"PYTHONPATH": ":".join(sys.path)}, **options) as first,
        subprocess.Popen([*command], env={"PYTHONPATH": ":".join(sys.path)}, **options) as second,
    ):
        processes = [first, second]
        said = [process.stdout.readline() for process in processes if process.stdout is not None]
        assert sorted(said) == ["in\n", "waits\n"]
        holder, waiter = processes if said[0] == "in\n" else processes[::-1]
        holder.communicate("\n")
        assert waiter.communicate("\n")[0] == "in\n"
    assert [path.name for path in folder.glob("*")] == (["file"] if habit == "write" else [])
    assert (tmp_path / "a").exists() == (habit == "write")


def test_a_folder_that_cannot_be_made_is_not_locked(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with folder_locked(tmp_path / "file" / "folder", lambda: pytest.fail("waits")):
        pass
