"""Errors a user can act on: what is wrong, where, what to do next; the exit code goes with the class."""

from collections.abc import Iterable
from typing import ClassVar


class TilecError(Exception):
    """A failure explained to the user; the command line prints `str(error)` and exits with `exit_code`.

    `message` says in one sentence what is wrong, `place` where (file:line:column, a node name, a folder),
    `hint` what to do next.
    """

    exit_code: ClassVar[int] = 1

    def __init__(self, message: str, place: str | None = None, hint: str | None = None) -> None:
        super().__init__(message, place, hint)
        self.message = message
        self.place = place
        self.hint = hint

    def __str__(self) -> str:
        head = f"{self.place}: {self.message}" if self.place else self.message
        return f"{head}\n  {self.hint}" if self.hint else head


class UsageError(TilecError):
    """The command was called wrongly or names something that does not exist."""

    exit_code = 2


class ConfigError(TilecError):
    """A device, recipe or model that cannot be used as written."""

    exit_code = 2


class ArtifactError(TilecError):
    """An artifact that is malformed, of another version, or no longer fits its inputs."""

    exit_code = 2


class VerificationMismatch(TilecError):
    """Results differ from the reference by more than the tolerance."""

    exit_code = 4


class UnsupportedError(TilecError):
    """Something in the input that tilec cannot do (yet) and has no fallback for."""

    exit_code = 5


class UnavailableError(TilecError):
    """A device, tool or optional dependency that this machine does not have."""

    exit_code = 6


class UnverifiedError(TilecError):
    """Nothing could be compared: whether the compiled model is right is not known."""

    exit_code = 7


def unreadable(error: OSError, place: str, missing: str = "Check the path.") -> UsageError:
    """The error for a file that cannot be read; `missing` is what to do where there is none."""
    if isinstance(error, FileNotFoundError):
        return UsageError("no such file", place, missing)
    if isinstance(error, IsADirectoryError):
        return UsageError("this is a folder", place, "Name a file.")
    if isinstance(error, NotADirectoryError):
        return UsageError("no such file: what stands before the last / is no folder", place, missing)
    hint = "Allow this user to read it." if isinstance(error, PermissionError) else "Check the file and its disk."
    return UsageError(f"cannot read the file: {error.strerror or error}", place, hint)


def several(count: int, noun: str) -> str:
    """`1 group`, `2 groups`, `1,000 groups`: a count with its noun."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def did_you_mean(word: str, options: Iterable[str]) -> str | None:
    """The option closest to `word`, or None when nothing is near."""
    by_lower = {option.lower(): option for option in options}
    import difflib

    near = difflib.get_close_matches(word.lower(), list(by_lower), n=1, cutoff=0.6)
    return by_lower[near[0]] if near else None
