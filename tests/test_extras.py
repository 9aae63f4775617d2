"""Commands that install extras name the place that tilec came from."""

import json
import shlex
from importlib.metadata import Distribution, PackageNotFoundError
from pathlib import Path

import pytest

import tilec
from tilec.extras import install


@pytest.mark.parametrize(
    ("noted", "command"),
    [
        (None, "pip install 'tilec[cuda]'"),
        ({"url": "file:///my%20work/tilec", "dir_info": {"editable": True}}, "pip install -e '/my work/tilec[cuda]'"),
        ({"url": "file:///src/tilec", "dir_info": {}}, "pip install '/src/tilec[cuda]'"),
        (
            {"url": "https://x.org/tilec-1.0-py3-none-any.whl", "archive_info": {}},
            "pip install 'tilec[cuda] @ https://x.org/tilec-1.0-py3-none-any.whl'",
        ),
        (
            {"url": "https://x.org/tilec.git", "vcs_info": {"vcs": "git", "commit_id": "1f3e"}},
            "pip install 'tilec[cuda] @ git+https://x.org/tilec.git@1f3e'",
        ),
    ],
)
def test_where_tilec_came_from(monkeypatch, noted, command):
    class Found:
        def read_text(self, name):
            assert name == "direct_url.json"
            return json.dumps(noted) if noted else None

    monkeypatch.setattr(Distribution, "from_name", lambda _name: Found())
    assert install("cuda") == command


def test_a_checkout_that_is_not_installed(monkeypatch):
    def missing(_name):
        raise PackageNotFoundError

    monkeypatch.setattr(Distribution, "from_name", missing)
    root = Path(tilec.__file__).parents[1]
    assert install("cuda") == f"pip install -e {shlex.quote(f'{root}[cuda]')}"
