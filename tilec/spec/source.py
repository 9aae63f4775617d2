"""The text of a device or recipe, and its place."""

from dataclasses import dataclass

HOST = "host"
"""The name of this machine as a device."""


@dataclass(frozen=True)
class Source:
    """The text of a device or recipe file and the place that errors name."""

    text: str
    place: str
