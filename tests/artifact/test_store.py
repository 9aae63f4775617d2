"""Files are complete or absent."""

import errno
import os
from pathlib import Path

import pytest

from tilec.artifact import atomic_open, touch, write_bytes, write_text
from tilec.errors import TilecError, UsageError


def everything_under(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def test_makes_folders_and_replaces(tmp_path: Path) -> None:
    target = tmp_path / "a" / "b" / "plan.json"
    write_text(target, "one\n")
    write_bytes(target, b"two\r\n")
    assert target.read_bytes() == b"two\r\n"
    assert everything_under(tmp_path) == ["a", "a/b", "a/b/plan.json"]


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt, OSError(errno.ENOSPC, "No space left on device")])
def test_nothing_is_left_when_writing_fails(tmp_path: Path, interrupt: type[BaseException] | OSError) -> None:
    expected = TilecError if isinstance(interrupt, OSError) else KeyboardInterrupt
    with pytest.raises(expected), atomic_open(tmp_path / "a" / "b" / "plan.json") as file:
        file.write(b"half")
        raise interrupt
    assert everything_under(tmp_path) == []


def test_a_file_that_the_block_cannot_read_is_told_as_that(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="model.onnx: no such file"), atomic_open(tmp_path / "weights.bin") as file:
        file.write((tmp_path / "model.onnx").read_bytes())
    assert everything_under(tmp_path) == []


def test_the_old_file_survives_a_failure(tmp_path: Path) -> None:
    write_text(tmp_path / "plan.json", "old")
    with pytest.raises(KeyboardInterrupt), atomic_open(tmp_path / "plan.json") as file:
        file.write(b"new")
        raise KeyboardInterrupt
    assert (tmp_path / "plan.json").read_text() == "old"
    assert everything_under(tmp_path) == ["plan.json"]


def test_a_full_disk_found_at_sync_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(TilecError) as error:
        write_text(tmp_path / "new" / "plan.json", "text")
    assert str(error.value) == (
        f"{tmp_path / 'new'}: cannot write plan.json: No space left on device\n"
        "  Free some space or choose another folder with -o."
    )
    assert everything_under(tmp_path) == []


def test_a_file_where_a_folder_is_needed(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("")
    with pytest.raises(TilecError, match="cannot write plan.json: Not a directory"):
        write_text(tmp_path / "a" / "b" / "plan.json", "text")
    assert everything_under(tmp_path) == ["a"]


def test_new_files_obey_the_umask(tmp_path: Path) -> None:
    old = os.umask(0o022)
    try:
        write_text(tmp_path / "plan.json", "text")
    finally:
        os.umask(old)
    assert (tmp_path / "plan.json").stat().st_mode & 0o777 == 0o644


def test_touch_changes_the_time_only(tmp_path: Path) -> None:
    write_text(tmp_path / "plan.json", "text")
    os.utime(tmp_path / "plan.json", (1, 1))
    touch(tmp_path / "plan.json")
    assert (tmp_path / "plan.json").stat().st_mtime > 1
    assert (tmp_path / "plan.json").read_text() == "text"
    with pytest.raises(TilecError, match="cannot touch gone.json"):
        touch(tmp_path / "gone.json")


def test_touch_leaves_what_may_not_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_path: Path) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr("tilec.artifact.store.os.utime", refuse)
    touch(tmp_path / "plan.json")
