"""One browser for all tests of the page."""

from collections.abc import Iterator

import pytest
from report.html.browser import Browser, browser


@pytest.fixture(scope="session")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browser(tmp_path_factory.mktemp("browser")) as opened:
        yield opened
