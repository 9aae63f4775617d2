"""The folder in which sessions find models that were compiled before, shared by all processes of a user.

digests/    sha256 of model files, remembered by place, size and times
models/     headers of models, and models that were given as bytes
structures/ which compiled model takes other weights, by structure
graphs/     graphs of PyTorch that were compiled
sessions/   compiled models, by everything that they depend on; a folder is there when it is complete
"""

import atexit
import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tilec.artifact import SETTLED, digest_file, digest_object, locked, put_text
from tilec.errors import unreadable

LIMIT_VARIABLE = "TILEC_CACHE_LIMIT"
"""The most bytes that compiled models and models given as bytes take together."""

_SHA256 = re.compile("[0-9a-f]{64}")

_KEY = 32
"""Digits of a digest that name a folder."""


@dataclass(frozen=True)
class FileState:
    """A file's place, its number and bytes, and when its content and its entry in the file system last changed: nobody
    writes a file without another state, but within the tick of a clock."""

    path: str
    numbers: tuple[int, int]
    times: tuple[int, int]


def file_state(path: Path) -> FileState:
    """The state of a file. Raises UsageError when it cannot be read."""
    try:
        state = os.stat(path)
        place = str(path.resolve())
    except OSError as error:
        raise unreadable(error, str(path)) from error
    return FileState(place, (state.st_ino, state.st_size), (state.st_mtime_ns, state.st_ctime_ns))


@dataclass(frozen=True)
class Cache:
    """One such folder."""

    root: Path

    def session(self, key: str) -> Path:
        """The folder of a compiled model, there or not."""
        return self.root / "sessions" / key[:_KEY]

    def model(self, digest: str) -> Path:
        """The folder of what is known of a model."""
        return self.root / "models" / digest[:_KEY]

    def digest(self, path: Path) -> str:
        """sha256 of a file, remembered while it stays as it is. Raises UsageError when it cannot be read."""
        state = file_state(path)
        known = self._digest_at(state)
        if known is None:
            known = digest_file(path)
            if (
                min(abs(time.time_ns() - each) for each in state.times) > SETTLED * 1e9
            ):  # a clock may have been set back
                self.keep(self._note(state), known)
        return known

    def known_digest(self, path: Path) -> str | None:
        """The same if it is remembered; None where the file would have to be read."""
        return self._digest_at(file_state(path))

    def _digest_at(self, state: "FileState") -> str | None:
        with suppress(OSError, UnicodeDecodeError):
            known = self._note(state).read_text(encoding="ascii")
            if _SHA256.fullmatch(known):
                return known
        return None

    def _note(self, state: "FileState") -> Path:
        return self.root / "digests" / digest_object([state.path, *state.numbers, *state.times])[:_KEY]

    def keep(self, path: Path, text: str) -> None:
        """Write something that can be found out again; a folder that cannot be written is no error."""
        with suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            put_text(path, text)

    def beside(self, folder: Path) -> "Cache":
        """A cache in an empty folder for models that nobody else will ask for: objects, searches and structures are
        those of this one."""
        for name in ("objects", "searches", "structures", "digests"):
            (self.root / name).mkdir(parents=True, exist_ok=True)
            (folder / name).symlink_to(self.root / name)
        return Cache(folder)

    @property
    def writable(self) -> bool:
        """Whether compiled models can be put here."""
        folder = self.root / "sessions"
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError:
            return False
        return os.access(folder, os.W_OK | os.X_OK)

    @contextmanager
    def locked(self, key: str) -> Iterator[None]:
        """Hold the one right to compile `key`; whoever dies gives it back."""
        with locked(self.session(key).with_suffix(".lock")):
            yield


@cache
def temporary_cache() -> str:
    """The root of a cache that goes with this process."""
    import shutil
    import tempfile

    folder = tempfile.mkdtemp(prefix="tilec-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
