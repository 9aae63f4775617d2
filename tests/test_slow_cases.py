"""The list of slow cases names cases of parametrized tests, and leaves out one of each at least."""

import re
from collections import Counter
from pathlib import Path

from slow_cases import slow_cases

ROOT = Path(__file__).parents[1]


def test_every_slow_case_is_one_of_several_of_a_test() -> None:
    tests = Counter(case.partition("[")[0] for case in slow_cases())
    for test in tests:
        file, _, name = test.partition("::")
        text = (ROOT / file).read_text(encoding="utf-8")
        found = re.search(rf"(?:^@.*\n(?:^[ )\]].*\n)*)+^def {name.rpartition('::')[2]}\(", text, re.MULTILINE)
        assert found is not None, test
        assert "parametrize" in found.group() or "params=" in text, test
