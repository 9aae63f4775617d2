"""`python -m tests.on_gpu.tables OUT`: the results of a run as tables of the manual."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import exp, log, sqrt
from pathlib import Path
from statistics import mean
from typing import Any

from tests.on_gpu.cases import FUSED

Row = Sequence[object]


def main(out: Path) -> int:
    """Print them."""
    found = {file.stem: json.loads(file.read_text(encoding="utf-8")) for file in out.glob("*.json")}
    anchors = {name: told for name, told in found["anchors"].items() if "error" not in told}
    for rows in (
        kernels(anchors),
        classes(anchors),
        models(found["models"], found["peers"]),
        fusion(found["models"]),
    ):
        for row in rows:
            print(f"| {' | '.join(map(str, row))} |")
        print()
    return 0


def kernels(anchors: Mapping[str, Any]) -> Iterator[Row]:
    """Kernels by class: warm and cold times, predicted, PyTorch's."""
    yield ("kernel", "tilec us", "cold", "predicted us", "PyTorch us", "cold", "PyTorch over tilec", "cold")
    yield ("---",) * 8
    for name, told in sorted(anchors.items(), key=lambda each: each[1]["family"]):
        times = [told["warm"]["us"], told["cold"]["us"], told["predicted_us"]]
        peers = [told["peer"][way]["us"] for way in ("warm", "cold")]
        ratios = [f"{peer / own:.2f}" for peer, own in zip(peers, times, strict=False)]
        yield (name, *(f"{each:.1f}" for each in (*times, *peers)), *ratios)


def classes(anchors: Mapping[str, Any]) -> Iterator[Row]:
    """Measured over predicted times by class, and how many times PyTorch takes as long."""
    yield (
        "class",
        "kernels",
        "measured over predicted, warm",
        "cold",
        "spread, cold",
        "PyTorch over tilec, warm",
        "cold",
    )
    yield ("---",) * 7
    families = dict.fromkeys(told["family"] for told in sorted(anchors.values(), key=lambda each: each["family"]))
    for family in (*families, "all"):
        chosen = [told for told in anchors.values() if family in ("all", told["family"])]
        warm, cold = ([told[way]["us"] / told["predicted_us"] for told in chosen] for way in ("warm", "cold"))
        peers = ([told["peer"][way]["us"] / told[way]["us"] for told in chosen] for way in ("warm", "cold"))
        numbers = (geometric(warm), geometric(cold), spread(cold), *map(geometric, peers))
        yield (family, len(chosen), *(f"{number:.2f}" for number in numbers))


def models(found: Mapping[str, Any], peers: Mapping[str, Any]) -> Iterator[Row]:
    """Whole models beside torch.compile."""
    yield ("model", "launches", "tilec us", "predicted us", "torch.compile us", "torch.compile over tilec")
    yield ("---",) * 6
    for name, told in found.items():
        if name.endswith(("-none", "-register")):
            continue
        peer = peers.get(name, {}).get("us")
        beside = (f"{peer:.0f}", f"{peer / told['time']['us']:.2f}") if peer else ("", "")
        yield (name, told["launches"], f"{told['time']['us']:.0f}", f"{told['predicted_us']:.0f}", *beside)


def fusion(found: Mapping[str, Any]) -> Iterator[Row]:
    """Models without fusion, with fusion in registers and with all: launches, measured and predicted times."""
    yield ("model", "launches", "measured us", "predicted us", "none over full", "predicted")
    yield ("---",) * 6
    for model, ttype in FUSED:
        told = [found[f"{model}-{ttype}{ending}"] for ending in ("-none", "-register", "")]
        times, predicted = [each["time"]["us"] for each in told], [each["predicted_us"] for each in told]
        cells = ([each["launches"] for each in told], [f"{t:,.0f}" for t in times], [f"{t:,.0f}" for t in predicted])
        ratios = (f"{each[0] / each[-1]:.2f}" for each in (times, predicted))
        yield (f"{model} {ttype}", *(" / ".join(map(str, each)) for each in cells), *ratios)


def geometric(ratios: Iterable[float]) -> float:
    """The geometric mean."""
    return exp(mean(map(log, ratios)))


def spread(ratios: Sequence[float]) -> float:
    """One standard deviation of the logarithm, as a factor."""
    middle = log(geometric(ratios))
    return exp(sqrt(mean((log(ratio) - middle) ** 2 for ratio in ratios)))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
