"""The folder of everything that can be found out again, of a user."""

import os
from collections.abc import Mapping
from pathlib import Path


def cache_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """The folder: `tilec` in XDG_CACHE_HOME, else in ~/.cache."""
    home = environ.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path.home() / ".cache") / "tilec"
