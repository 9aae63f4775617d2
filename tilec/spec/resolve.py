"""From a name or a file to a device, recipe or type, in wheel, editable and zipped installs and from any folder."""

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

from tilec.errors import UsageError, did_you_mean, unreadable
from tilec.spec.probe import is_newer, known_text, probed_text
from tilec.spec.source import HOST, Source

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

    from tilec.spec.device import DeviceSpec


def packaged(folder: str) -> dict[str, "Traversable"]:
    """Name -> file of the devices, recipes or types that come with tilec, in the `folder` of that name."""
    from importlib.resources import files

    root = files("tilec").joinpath("_data", folder)
    if not root.is_dir():
        # A checkout or an editable install: the folder stands beside the package.
        root = Path(str(files("tilec"))).parent / folder
    found: dict[str, Traversable] = {}
    _collect(root, "", found)
    return found


def _collect(folder: "Traversable", prefix: str, found: dict[str, "Traversable"]) -> None:
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name.removesuffix(".yaml")):
        if entry.is_dir():
            _collect(entry, f"{prefix}{entry.name}/", found)
        elif entry.name.endswith(".yaml"):
            found[prefix + entry.name.removesuffix(".yaml")] = entry


_ALTERED = re.compile(r"(?P<name>[^\[\]]+)\[(?P<settings>[^\[\]]*=.*)\]")
_NEXT = re.compile(r",(?=[\w.\s]+=)")
"""Between two settings: a comma that a key follows."""


class UnmeasuredError(Exception):
    """This machine was not measured yet, which whoever asks does not want to wait for."""


def device_source(
    name: str, *, relative_to: Path | None = None, host_file: Path | None = None, measure: bool = True
) -> Source:
    """The text of a device: `host` (`host_file` where it is one and this machine was not measured later, else measured
    once and cached), a packaged name, or a file; with other values where keys in brackets follow:
    `a100[levels.smem.capacity=64KiB]`.

    Raises UsageError when there is none; UnmeasuredError where this machine was not measured, and is not to be now.
    """
    altered = _ALTERED.fullmatch(name)
    if altered is not None:
        from tilec.spec.override import with_values

        given = device_source(altered["name"], relative_to=relative_to, host_file=host_file, measure=measure)
        settings = _NEXT.split(altered["settings"])
        if altered["name"] != HOST:  # which stays the device that this machine runs code for
            settings.append(f"name={json.dumps(name)}")
        return Source(with_values(given, settings, name).text, name)
    if name == HOST and host_file is not None and host_file.is_file():
        beside = _source(str(host_file), "devices", None)
        known = known_text()
        if parse_device(beside).name == HOST and (known is None or not is_newer(known, beside.text)):
            return beside
    if name == HOST:
        text = probed_text() if measure else known_text()
        if text is None:
            raise UnmeasuredError
        return Source(text, "host")
    return _source(name, "devices", relative_to)


def recipe_source(name: str) -> Source:
    """The text of a recipe: a packaged name or a file. Raises UsageError when there is none."""
    return _source(name, "recipes", None)


def type_source(name: str, *, relative_to: Path | None = None) -> Source:
    """The text of a type of elements: a packaged name or a file. Raises UsageError when there is none."""
    return _source(name, "types", relative_to)


def parse_device(source: Source) -> "DeviceSpec":
    """The device in a text. Raises ConfigError with line and column, for values that contradict each other too."""
    from tilec.spec.contradictions import device_contradictions, refuse
    from tilec.spec.device import DeviceSpec
    from tilec.spec.located import parse_yaml, validate

    located = parse_yaml(source.text, source.place)
    device = validate(DeviceSpec, located)
    refuse(device_contradictions(device), located)
    return device


def resolve_device(name: str, *, relative_to: Path | None = None) -> "DeviceSpec":
    """The device of a name or file. Raises UsageError when there is none, ConfigError when it is wrong."""
    return parse_device(device_source(name, relative_to=relative_to))


def _source(name: str, folder: str, relative_to: Path | None) -> Source:
    known = packaged(folder)
    if name in known:
        return Source(known[name].read_text(encoding="utf-8"), f"{folder}/{name}.yaml")
    path = Path(name) if relative_to is None else relative_to / name
    try:
        if not name:
            raise FileNotFoundError
        return Source(path.read_text(encoding="utf-8"), str(path))
    except FileNotFoundError as error:
        if name.endswith((".yaml", ".yml")):
            hint = f"{path.stem} without .yaml comes with tilec." if path.stem in known else "Check the path."
            raise unreadable(error, str(path), hint) from None
    except UnicodeDecodeError as error:
        raise UsageError("the file is binary", str(path), "Name a YAML file.") from error
    except OSError as error:
        raise unreadable(error, str(path)) from error
    thing = folder.removesuffix("s")
    options = [*known, HOST] if folder == "devices" else list(known)
    near = did_you_mean(name, options)
    hint = f"Did you mean {near!r}?" if near else f"Known: {', '.join(sorted(options))}; or give a .yaml file."
    raise UsageError(f"no {thing} is called {name!r}", hint=hint)
