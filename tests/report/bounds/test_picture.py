"""Pictures as files."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from report.bounds.subjects import small

from tilec.errors import UnavailableError, UsageError
from tilec.extras import install
from tilec.report.bounds.panels import panels
from tilec.report.bounds.picture import draw
from tilec.spec.resolve import resolve_device


@pytest.mark.feature("O01", "O07", "O08")
def test_svg_holds_every_panel_and_is_the_same_every_time(tmp_path: Path) -> None:
    shown = panels([small()], resolve_device("a100"))
    for name in ("a.svg", "b.svg"):
        draw(shown, "C, m=6", tmp_path / name)
    text = (tmp_path / "a.svg").read_text(encoding="utf-8")
    assert text == (tmp_path / "b.svg").read_text(encoding="utf-8")
    for word in ("C, m=6", "Ski slope", "OI mesa", "Performance mesa: a100", "oro+", "smem"):
        assert f"<!-- {word}" in text


def test_png(tmp_path: Path) -> None:
    draw(panels([small()], None), "C", tmp_path / "a.png")
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    assert [path.name for path in tmp_path.iterdir()] == ["a.png"]


def test_other_formats_and_a_missing_matplotlib_are_told_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UsageError, match=r"a\.gif: cannot draw a \.gif"):
        draw([], "", tmp_path / "a.gif")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(UnavailableError, match=re.escape(install("plot"))):
        draw([], "", tmp_path / "a.png")
    assert not list(tmp_path.iterdir())
