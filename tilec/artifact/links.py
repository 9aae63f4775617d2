"""Links to weight files beside the artifacts that name them, so that JSON contains file names and never paths."""

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType

from tilec.artifact.digest import digest_file
from tilec.artifact.filenames import refuse_outside
from tilec.artifact.store import unwritable
from tilec.errors import ArtifactError, UsageError

_NOWHERE: Mapping[str, Path] = MappingProxyType({})


def bring_files(files: Mapping[str, str], source: Path, target: Path, moved: Mapping[str, Path] = _NOWHERE) -> None:
    """Make the weight files `files` (name -> sha256) of folder `source` reachable in folder `target`.

    `moved` gives the paths of files that are not in `source` (any more). A link is made: symbolic and relative, else
    hard, else a copy. An existing file with the same content is left alone. Raises ArtifactError when a file is missing
    in `source` or has a name that leads out of the folder, UsageError when another file of that name exists in
    `target`, TilecError when `target` cannot be written.
    """
    for name, sha256 in files.items():
        refuse_outside(name, str(target))
        real, here = moved.get(name, source / name).resolve(), target / name
        if here.resolve() == real and real.exists():
            continue
        if not real.is_file():
            raise missing_file(name, source)
        if here.exists() and not here.is_symlink():
            if digest_file(here) == sha256:
                continue
            raise UsageError(
                f"another {name} stands in the output folder",
                str(target),
                "Choose another folder with -o, or move that file away.",
            )
        try:
            here.parent.mkdir(parents=True, exist_ok=True)
            _link(real, here)
        except OSError as error:
            raise unwritable(error, here) from error


def require_files(files: Mapping[str, str], folder: Path) -> None:
    """Check that the weight files `files` (name -> sha256) of `folder` are those that an artifact was made from.

    Raises ArtifactError for the first one that is missing, different, or out of the folder.
    """
    for name, sha256 in files.items():
        refuse_outside(name, str(folder))
        if not (folder / name).is_file():
            raise missing_file(name, folder)
        if digest_file(folder / name) != sha256:
            raise ArtifactError(
                f"{name} is not the file that this was made from",
                str(folder),
                "Run `tilec import` again, or name the original with --model PATH.",
            )


def missing_file(name: str, folder: Path) -> ArtifactError:
    """The error for a weight file that an artifact names and that does not exist."""
    return ArtifactError(f"{name}, which holds the weights, is not here", str(folder), "Name it with --model PATH.")


def _link(real: Path, here: Path) -> None:
    """Put a link to `real`, or failing that a copy, at `here` in one step."""
    aside = here.with_name(f".{here.name}.{os.urandom(4).hex()}.tmp")
    try:
        try:
            aside.symlink_to(os.path.relpath(real, here.parent.resolve()))
        except (OSError, ValueError):  # no permission for symbolic links (Windows), or another drive
            try:
                os.link(real, aside)
            except OSError:
                from shutil import copyfile

                copyfile(real, aside)
        os.replace(aside, here)
    except BaseException:
        with suppress(OSError):
            aside.unlink()
        raise
