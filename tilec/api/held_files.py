"""The files of a model, held open until it is known which model that is: programs write models into temporary files,
which are gone when their session is open."""

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from tilec.artifact import atomic_open
from tilec.errors import UsageError

MOST = 16
"""Files of a model that are held; a model of more is read where it lies."""

_CHUNK = 1 << 20


@dataclass(frozen=True)
class HeldFile:
    """A file by the name that the model gives it, "" for the model's own: its place, a descriptor of it, and its size
    and times when that was opened."""

    name: str
    path: str
    descriptor: int
    size: int
    times: tuple[int, int]

    def require_unchanged(self) -> None:
        """Raise UsageError where it was written since; that others may have taken its place does not matter."""
        now = os.fstat(self.descriptor)
        times = (now.st_mtime_ns, now.st_ctime_ns)
        compared = 2 if self.in_place else 1  # who removes a file, changes its state
        if now.st_size != self.size or times[:compared] != self.times[:compared]:
            raise UsageError("it changed since the session was opened", self.path, "Open the session again.")

    @property
    def in_place(self) -> bool:
        """Whether it still lies where it was opened."""
        try:
            return os.path.samestat(os.stat(self.path), os.fstat(self.descriptor))
        except OSError:
            return False

    def digest(self) -> str:
        """sha256 of its content."""
        digest = sha256()
        for chunk in self._chunks():
            digest.update(chunk)
        return digest.hexdigest()

    def copy(self, here: Path) -> None:
        """Let its content be at `here`, in a folder that nothing else has. Raises TilecError."""
        if here.is_file() and here.stat().st_size == self.size:
            return
        with atomic_open(here) as file:
            for chunk in self._chunks():
                file.write(chunk)

    def _chunks(self) -> Iterator[bytes]:
        """Its content; the descriptor's position, which copied processes share, stays."""
        position = 0
        while chunk := os.pread(self.descriptor, _CHUNK, position):
            position += len(chunk)
            yield chunk


def hold(model: Path, weights: Iterable[str]) -> tuple[HeldFile, ...]:
    """Hold a model's file and those beside it; none where the system does not let them be removed while they are open,
    where they are too many, and where one cannot be opened."""
    names = ["", *weights]
    if os.name != "posix" or len(names) > MOST:
        return ()
    held: list[HeldFile] = []
    try:
        for name in names:
            path = model.parent / name if name else model
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            state = os.fstat(descriptor)
            times = (state.st_mtime_ns, state.st_ctime_ns)
            held.append(HeldFile(name, str(path.absolute()), descriptor, state.st_size, times))
    except OSError:
        release(held)
        return ()
    return tuple(held)


def release(files: Iterable[HeldFile]) -> None:
    """Hold them no longer."""
    for file in files:
        os.close(file.descriptor)
