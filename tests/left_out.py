"""Why a run of CI may leave tests out; any other reason is a tool that `.ci/run` or the extra `dev` installs."""

from collections.abc import Iterable

KNOWN = {
    "mounts file systems": "needs root, which CI may not be",
}


def unexpected(reasons: Iterable[str]) -> list[str]:
    """The reasons that are not known."""
    return sorted(set(reasons) - KNOWN.keys())
