"""One cache for all tests of sessions; what is warned about once is warned about anew in each test."""

import subprocess

import pytest

from tilec.api import compiling, in_background, warn_once, worker


@pytest.fixture(scope="session")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def fresh_notices():
    warn_once.forget()
    yield
    warn_once.forget()


@pytest.fixture(scope="session", autouse=True)
def in_this_process():
    """Models are compiled here, which saves a start of Python and TVM for each."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiling, "_run", worker.build)
        patch.setattr(in_background, "ask", lambda request: False)
        yield


@pytest.fixture
def children(monkeypatch, in_this_process):
    """Models are compiled in processes of their own, as they are for users; counts them."""
    started = []

    def popen(*arguments, **options):
        started.append(POPEN(*arguments, **options))
        return started[-1]

    monkeypatch.setattr(compiling, "_run", RUN)
    monkeypatch.setattr(subprocess, "Popen", popen)
    return started


RUN, POPEN = compiling._run, subprocess.Popen
ASK = in_background.ask
