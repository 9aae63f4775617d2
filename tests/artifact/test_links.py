"""Weight files beside artifacts: linked, never overwritten, checked by content."""

import os

import pytest

from tilec.artifact import bring_files, digest_bytes, digest_file, require_files
from tilec.errors import ArtifactError, TilecError, UsageError

CONTENT = b"weights"
FILES = {"model.onnx": digest_bytes(CONTENT)}


@pytest.fixture
def source(tmp_path):
    folder = tmp_path / "models"
    folder.mkdir()
    (folder / "model.onnx").write_bytes(CONTENT)
    return folder


def test_a_relative_link_that_moves_with_both_folders(tmp_path, source):
    target = tmp_path / "out" / "build"
    bring_files(FILES, source, target)
    assert os.readlink(target / "model.onnx") == "../../models/model.onnx"
    tmp_path.joinpath("moved").mkdir()
    for folder in ("models", "out"):
        (tmp_path / folder).rename(tmp_path / "moved" / folder)
    assert (tmp_path / "moved" / "out" / "build" / "model.onnx").read_bytes() == CONTENT


def test_the_link_goes_to_the_real_file_and_is_made_once(tmp_path, source):
    bring_files(FILES, source, tmp_path / "one")
    bring_files(FILES, tmp_path / "one", tmp_path / "two")
    assert os.readlink(tmp_path / "two" / "model.onnx") == "../models/model.onnx"
    before = os.lstat(tmp_path / "two" / "model.onnx").st_ino
    bring_files(FILES, tmp_path / "one", tmp_path / "two")
    assert os.lstat(tmp_path / "two" / "model.onnx").st_ino == before
    bring_files(FILES, source, source)
    assert not (source / "model.onnx").is_symlink()


def test_a_file_in_a_folder_of_the_model(tmp_path, source):
    (source / "data").mkdir()
    (source / "data" / "a.bin").write_bytes(CONTENT)
    bring_files({"data/a.bin": FILES["model.onnx"]}, source, tmp_path / "build")
    assert (tmp_path / "build" / "data" / "a.bin").read_bytes() == CONTENT


def test_an_old_link_is_replaced_but_never_a_file_of_the_user(tmp_path, source):
    target = tmp_path / "build"
    target.mkdir()
    (target / "model.onnx").symlink_to("nowhere")
    bring_files(FILES, source, target)
    assert (target / "model.onnx").read_bytes() == CONTENT
    (target / "model.onnx").unlink()
    (target / "model.onnx").write_bytes(CONTENT)
    bring_files(FILES, source, target)
    assert not (target / "model.onnx").is_symlink()
    (target / "model.onnx").write_bytes(b"mine")
    with pytest.raises(UsageError, match=r"another model\.onnx"):
        bring_files(FILES, source, target)
    assert (target / "model.onnx").read_bytes() == b"mine"


def test_without_symbolic_links_a_hard_one_and_without_those_a_copy(tmp_path, source, monkeypatch):
    def refuse(*_: object, **__: object) -> None:
        raise OSError

    monkeypatch.setattr("pathlib.Path.symlink_to", refuse)
    bring_files(FILES, source, tmp_path / "hard")
    assert (tmp_path / "hard" / "model.onnx").samefile(source / "model.onnx")
    monkeypatch.setattr("tilec.artifact.links.os.link", refuse)
    bring_files(FILES, source, tmp_path / "copy")
    assert not (tmp_path / "copy" / "model.onnx").samefile(source / "model.onnx")
    assert (tmp_path / "copy" / "model.onnx").read_bytes() == CONTENT


def test_a_missing_file_names_the_flag(tmp_path, source):
    with pytest.raises(ArtifactError, match=r"model\.onnx") as found:
        bring_files(FILES, tmp_path, tmp_path / "build")
    assert found.value.hint is not None
    assert "--model" in found.value.hint
    assert not (tmp_path / "build").exists()
    bring_files(FILES, tmp_path, tmp_path / "build", {"model.onnx": source / "model.onnx"})
    assert (tmp_path / "build" / "model.onnx").read_bytes() == CONTENT


def test_a_folder_that_cannot_be_written(tmp_path, source):
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(TilecError, match=r"cannot write model\.onnx"):
        bring_files(FILES, source, tmp_path / "file")


def test_content_is_required(source):
    require_files(FILES, source)
    (source / "model.onnx").write_bytes(b"other!!")
    with pytest.raises(ArtifactError, match="not the file that this was made from"):
        require_files(FILES, source)
    (source / "model.onnx").unlink()
    with pytest.raises(ArtifactError, match="is not here"):
        require_files(FILES, source)


def test_digests_are_kept_until_the_file_changes(source, monkeypatch):
    path = source / "model.onnx"
    assert digest_file(path) == FILES["model.onnx"]
    calls = []
    monkeypatch.setattr("tilec.artifact.digest.hashlib.file_digest", lambda *_: calls.append(1))
    assert digest_file(path) == FILES["model.onnx"]
    assert not calls
    monkeypatch.undo()
    path.write_bytes(b"another")
    assert digest_file(path) == digest_bytes(b"another")


@pytest.mark.parametrize(
    "name", ["../model.onnx", "/etc/passwd", "a/../../b", "C:\\x", "C:x", "a\\b", "", ".", "a//b", "a\0"]
)
def test_names_that_lead_out_of_the_folder(tmp_path, source, name):
    files = {name: digest_bytes(CONTENT)}
    with pytest.raises(ArtifactError, match="no name of a file in this folder"):
        bring_files(files, source, tmp_path / "target")
    with pytest.raises(ArtifactError, match="no name of a file in this folder"):
        require_files(files, source)
    assert not (tmp_path / "target").exists()
