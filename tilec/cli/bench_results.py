"""Results of `tilec bench` as a table and as JSON."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tilec.artifact import Json
from tilec.cli.tables import table

if TYPE_CHECKING:
    from tilec.bench import Comparison, Needs, Timing


def results_json(
    results: "Mapping[str, Comparison]",
    compiling: Mapping[str, float],
    timing: "Timing",
    bar: float,
    groups: Mapping[str, list[Json]],
) -> dict[str, Json]:
    """Times, ratios and resources of every model; `compiling` is in seconds, `groups` are those of its trace, if there
    is one."""
    models: dict[str, Json] = {}
    for name, comparison in results.items():
        peers: dict[str, Json] = {
            peer: {
                "interval": [round(ratio.low, 4), round(ratio.high, 4)],
                "ratio": round(ratio.median, 4),
                "verdict": ratio.verdict(bar),
            }
            for peer, ratio in comparison.ratios().items()
        }
        models[name] = {
            "compile_s": round(compiling[name], 3),
            "load_s": {runner: round(needs.seconds, 4) for runner, needs in comparison.needs.items()},
            "median_s": {runner: round(comparison.seconds(runner), 9) for runner in comparison.rounds},
            "peak_bytes": {runner: needs.bytes for runner, needs in comparison.needs.items()},
            "peers": peers,
            "rounds_s": {runner: [round(each, 9) for each in times] for runner, times in comparison.rounds.items()},
            **({"groups": groups[name]} if name in groups else {}),
        }
    return {"bar": bar, "models": models, "processes": timing.processes, "threads": timing.threads}


def results_table(results: "Mapping[str, Comparison]", bar: float) -> str:
    """Aligned columns, one line per model and peer; a cell with two values is tilec / peer."""
    rows = [["model", "peer", "ms", "ratio", "95 % interval", f">= {bar:g}", "load s", "peak MiB"]]
    for name, comparison in results.items():
        for peer, ratio in comparison.ratios().items():
            both = ("tilec", peer)
            rows.append(
                [
                    name,
                    peer,
                    " / ".join(f"{1e3 * comparison.seconds(runner):.3f}" for runner in both),
                    f"{ratio.median:.3f}",
                    f"{ratio.low:.3f} - {ratio.high:.3f}",
                    ratio.verdict(bar),
                    " / ".join(f"{comparison.needs[runner].seconds:.2f}" for runner in both),
                    " / ".join(_mebibytes(comparison.needs[runner]) for runner in both),
                ]
            )
    return table(rows, {"model", "peer"})


def _mebibytes(needs: "Needs") -> str:
    return "?" if needs.bytes is None else f"{needs.bytes / 2**20:.0f}"
