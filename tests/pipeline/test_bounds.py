"""From what is named to subjects."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import pytest
from cli import models

from tilec import zoo
from tilec.analysis.bounds.subject import Subject
from tilec.artifact import Artifact
from tilec.errors import ArtifactError, ConfigError, UsageError
from tilec.ir.codec import graph_to_json
from tilec.pipeline.bounds import einsum_subject, graph_subjects, read_graph, workload
from tilec.progress import unseen


class Listener:
    """Hears of stages and says nothing."""

    def stage(self, _name: str) -> nullcontext[object]:
        return nullcontext(unseen)

    def skipped(self, _stage: str) -> None: ...

    def step(self, text: str) -> None: ...

    def note(self, text: str) -> None: ...


def subjects(source: Path, steps: list[tuple[int, int]] | None = None, **shapes: int) -> list[Subject]:
    told: list[tuple[int, int]] = steps if steps is not None else []
    graph = read_graph(str(source), shapes, Listener())
    return graph_subjects(graph, ("oro", "oro+"), [], lambda *step: told.append(step))


@pytest.mark.feature("O35")
def test_a_model_has_its_contractions_its_chains_and_itself(tmp_path: Path) -> None:
    steps: list[tuple[int, int]] = []
    first, second, chain, whole = subjects(models.mlp(tmp_path / "model.onnx", batch=4), steps)
    assert [(each.name, each.count) for each in (first, second)] == [("h0", 1), ("y", 1)]
    assert first.text == "O[m, n] = sum(k, A[m, k] * B[k, n])"
    assert first.sizes == {"m": 4, "n": 32, "k": 16}
    assert (chain.name, chain.text) == ("h0 ... y", "4x16x32 > 4x32x8")
    assert whole.text == "the whole graph of 4 nodes"
    assert whole.compulsory == 4 * (4 * 16 + 16 * 32 + 32 + 32 * 8 + 4 * 8)
    assert [slope.name for slope in first.slopes] == ["oro", "oro+"]
    assert steps == [(done, 4) for done in range(5)]


def test_sizes_are_bound_in_models_and_artifacts(tmp_path: Path) -> None:
    model = models.mlp(tmp_path / "model.onnx", batch="batch")
    graph = read_graph(str(model), {}, Listener())
    Artifact("graph", {}, graph_to_json(graph)).write(tmp_path / "1-graph.json")
    for source in (model, tmp_path, tmp_path / "1-graph.json"):
        with pytest.raises(UsageError, match="sizes batch are not bound\n  Bind them: --shape batch=SIZE"):
            subjects(source)
        assert subjects(source, batch=8)[0].sizes["m"] == 8
        with pytest.raises(UsageError, match="no symbol 'btch'"):
            subjects(source, btch=8)


def test_models_of_the_zoo_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[dict[str, int | None]] = []

    def export(_name: str, path: Path, **sizes: int | None) -> None:
        asked.append(sizes)
        models.mlp(path)

    monkeypatch.setattr(zoo, "export", export)
    assert len(subjects(Path("bert-base"), batch=2)) == 4
    assert asked == [{"batch": 2, "seq": None}]


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("bert-bse", "there is no 'bert-bse'\n  Did you mean 'bert-base'?"),
        ("quux", "there is no 'quux'\n  Name an Einsum, a workload, an ONNX model, a graph or its folder."),
        ("gone.onnx", "gone.onnx: no such file"),
    ],
)
def test_what_there_is_not(source: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_graph(source, {}, Listener())
    assert str(caught.value) == said


def test_a_plan_is_no_graph(tmp_path: Path) -> None:
    Artifact("plan", {}, {}).write(tmp_path / "2-plan.json")
    with pytest.raises(ArtifactError, match="this is a plan, a graph is needed"):
        read_graph(str(tmp_path / "2-plan.json"), {}, Listener())


def test_recipes_of_another_kind() -> None:
    with pytest.raises(ConfigError, match="expected kind 'bounds', found 'compile'"):
        workload("default")
    assert workload("bounds/gemm-4k").mapspace == "oro"


def test_one_mapspace() -> None:
    found = einsum_subject("C[m,n] = sum(k, A[m,k] * B[k,n])", {"m": 4, "n": 4, "k": 4}, 8, ("oro+",))
    assert [slope.name for slope in found.slopes] == ["oro+"]
