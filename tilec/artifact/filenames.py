"""File names in artifacts: relative, with `/` as separator, always inside the folder they are relative to."""

from pathlib import PurePosixPath, PureWindowsPath

from tilec.errors import ArtifactError

MAX_FILENAME_LENGTH = 1024
"""Maximal number of characters of a name."""


def is_inside(name: str) -> bool:
    """Whether a name denotes the same file on every system and stays in its folder."""
    path = PurePosixPath(name)
    plain = "\\" not in name and not any(ord(letter) < 32 for letter in name) and len(name) <= MAX_FILENAME_LENGTH
    away = path.is_absolute() or ".." in path.parts or PureWindowsPath(name).drive or str(path) != name
    return bool(name) and name != "." and plain and not away


def require_inside(name: str) -> None:
    """Raise ValueError for a file name that leads out of the artifact's folder."""
    if not is_inside(name):
        raise ValueError(f"{name[:MAX_FILENAME_LENGTH]!r} is no name of a file in the artifact's folder")


def refuse_outside(name: str, place: str) -> None:
    """Raise ArtifactError for a file name that leads out of the folder `place`."""
    if not is_inside(name):
        raise ArtifactError(
            f"{name[:MAX_FILENAME_LENGTH]!r} is no name of a file in this folder",
            place,
            "Undo the edit, or make the artifact anew.",
        )
