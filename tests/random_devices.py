"""Random devices (hypothesis): one to six levels of any size, optional fields there or not, pools, caches, fan-outs."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from tests.random_plans import NAMES
from tilec.spec.device import DeviceSpec
from tilec.spec.located import parse_yaml, validate

KIB, TIB = 10, 40
"""Exponents of 2: capacities lie between."""


@st.composite
def device_files(draw: Callable, smallest: int = KIB) -> dict[str, Any]:
    """What a device file says, as plain data; capacities from `2 ** smallest` bytes to 1 TiB."""

    def chance(percent: int) -> bool:
        return bool(draw(st.integers(0, 99)) < percent)

    def size(low: int, high: int, unit: str) -> str:
        exponent = draw(st.integers(low, high - 1))
        return f"{draw(st.integers(1 << exponent, 2 << exponent))}{unit}"

    names = sorted(draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=6, unique=True)), key=NAMES.index)
    levels: list[dict[str, Any]] = []
    for place, name in enumerate(names):
        element = f"{1 << draw(st.integers(0, 3))}B"
        level: dict[str, Any] = {
            "name": name,
            "capacity": size(smallest, TIB, "B"),
            "managed": draw(st.sampled_from(("explicit", "implicit"))),
            "transaction": {"element": element, "shape": [draw(st.sampled_from((1, 8, 32, 64)))]},
            "alignment": f"{(1, 16, 64)[(place + len(names)) % 3]}B",
        }
        if place and chance(50):
            level["units"] = draw(st.sampled_from((2, 4, 16, 108, 1472, 2000)))
            if chance(50):
                level["scope"] = f"unit of {name}"
        if chance(70):
            level["bandwidth"] = {"total": size(28, 45, "B/s")}
            if chance(30):
                level["bandwidth"]["reader"] = size(25, 40, "B/s")
        if chance(20):
            level["write_allocate"] = True
        if chance(30):
            level["pool"] = "shared"
        levels.append(level)
    data: dict[str, Any] = {
        "name": "random",
        "kind": "random",
        "levels": levels,
        "launch_level": draw(st.sampled_from(names)),
        "core_level": draw(st.sampled_from(names)),
        "compute": [
            {"name": f"unit{i}", "inputs": [ttype, ttype], "accumulator": ttype, "rate": size(30, 50, "FLOP/s")}
            for i, ttype in enumerate(_with_floats(draw(st.lists(st.sampled_from(TYPES), min_size=1, max_size=2))))
        ],
        "target": {"backend": draw(st.sampled_from(("cpu", "cuda", "none")))},
    }
    # A kernel runs on many cores.
    data["launch_level"] = min(data["launch_level"], data["core_level"], key=names.index)
    if any("pool" in level for level in levels):
        data["pools"] = {"shared": size(smallest, TIB, "B")}
    if chance(40):
        data["vector"] = {"bytes": f"{4 << draw(st.integers(0, 5))}B", "registers": draw(st.integers(1, 64))}
    if chance(50):
        data["launch_overhead"] = size(10, 25, "ps")
    return data


TYPES = ("f32", "f16", "i8")
"""Types of compute units."""


def _with_floats(types: list[str]) -> list[str]:
    """The types with a floating-point one among them: a device without refuses most graphs."""
    return types if set(types) - {"i8"} else ["f32", *types[1:]]


def read(data: dict[str, Any]) -> DeviceSpec:
    """The device, by way of the file's text."""
    return validate(DeviceSpec, parse_yaml(json.dumps(data), "random.yaml"))


def devices(smallest: int = KIB) -> st.SearchStrategy[DeviceSpec]:
    """Devices with two levels or more; a device with one has no hierarchy and its file is refused."""
    return device_files(smallest).filter(lambda data: len(data["levels"]) > 1).map(read)
