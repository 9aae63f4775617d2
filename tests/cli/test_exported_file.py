"""`tilec compile MODEL.pt2`: programs of `torch.export.save`."""

import contextlib
import importlib.util
import io
import json
import subprocess

import pytest

from tilec.extras import install


@pytest.fixture
def in_this_process(monkeypatch):
    """The program is read here, which saves a start of PyTorch."""

    def run(command, **_):
        from tilec.torch_backend import program_file

        assert command[2:4] == ["-m", program_file.__name__]
        with contextlib.redirect_stdout(io.StringIO()) as out:
            code = program_file.main(*command[4:])
        return subprocess.CompletedProcess(command, code, out.getvalue(), "")

    monkeypatch.setattr("tilec.cli.exported_file.subprocess.run", run)


@pytest.fixture
def program(tmp_path):
    torch = pytest.importorskip("torch", reason="pip install tilec[torch]")
    sizes = ({0: torch.export.Dim("batch", min=3, max=50)},)
    made = torch.export.export(torch.nn.Linear(4, 2), (torch.ones(5, 4),), dynamic_shapes=sizes)
    torch.export.save(made, tmp_path / "linear.pt2")
    return made


@pytest.mark.slow
def test_pytorch_is_started_to_read_a_program(program, tmp_path, cli):
    assert cli("compile", "linear.pt2", "--device", "avx2", "--to", "import").code == 0


@pytest.mark.feature("B18")
def test_a_program_becomes_a_build(program, tmp_path, cli, in_this_process):
    words = ("compile", "linear.pt2", "--device", "avx2", "--to", "schedule", "-o", "build")
    first = cli(*words)
    assert first.code == 0
    assert "serves: input_dim0 3..50 (recipe: shapes.input_dim0)" in first.err
    graph = json.loads((tmp_path / "build" / "1-graph.json").read_text())
    assert "input_dim0" in json.dumps(graph)
    assert "schedule: unchanged, skipped" in cli(*words).err


def test_files_without_a_program_are_told(tmp_path, cli, in_this_process):
    pytest.importorskip("torch", reason="pip install tilec[torch]")
    (tmp_path / "bad.pt2").write_bytes(b"PK\3\4 and no more")
    bad, missing = cli("compile", "bad.pt2"), cli("compile", "none.pt2")
    assert (bad.code, missing.code) == (2, 2)
    assert "cannot load the program" in bad.err
    assert "none.pt2: no such file" in missing.err
    assert list(tmp_path.iterdir()) == [tmp_path / "bad.pt2"]


def test_other_commands_say_who_takes_it(tmp_path, cli):
    (tmp_path / "bad.pt2").write_bytes(b"PK\3\4 and no more")
    assert "`tilec compile` takes exported programs of PyTorch" in cli("import", "bad.pt2").err


def test_without_pytorch_the_fix_is_told(cli, monkeypatch):
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *more: None if name == "torch" else find(name, *more))
    ran = cli("compile", "linear.pt2")
    assert ran.code == 6
    assert f"Run `{install('torch')}`" in ran.err
