"""The command that installs an optional part of tilec, from where tilec itself was installed."""

from __future__ import annotations

import json
import shlex
from importlib.metadata import Distribution, PackageNotFoundError
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

NAME = "tilec"


def install(extra: str) -> str:
    """A `pip install` of tilec with an extra: of the checkout, archive or repository that it came from, else of the
    index's."""
    origin = _origin()
    url = str(origin.get("url", ""))
    if "dir_info" in origin:
        folder = unquote(urlsplit(url).path)
        return f"pip install {'-e ' * bool(origin['dir_info'].get('editable'))}{shlex.quote(f'{folder}[{extra}]')}"
    if "vcs_info" in origin:
        url = f"{origin['vcs_info']['vcs']}+{url}@{origin['vcs_info']['commit_id']}"
    return f"pip install {shlex.quote(f'{NAME}[{extra}] @ {url}' if url else f'{NAME}[{extra}]')}"


def _origin() -> dict[str, Any]:
    """What pip noted of the origin (PEP 610): nothing for a package of an index, the checkout for one on PYTHONPATH."""
    try:
        noted = Distribution.from_name(NAME).read_text("direct_url.json")
    except PackageNotFoundError:
        root = Path(__file__).parents[1]
        return {"url": root.as_uri(), "dir_info": {"editable": True}} if (root / "pyproject.toml").is_file() else {}
    return json.loads(noted) if noted else {}
