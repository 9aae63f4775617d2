"""Values of a device file that are set by path."""

import pytest

from tilec.errors import UsageError
from tilec.spec.override import with_values
from tilec.spec.resolve import device_source, parse_device


def test_levels_and_units_are_addressed_by_name_and_comments_stay():
    source = device_source("a100")
    before = parse_device(source)
    settings = ["levels.smem.capacity=100KiB", "levels.0.bandwidth.total=1TB/s", "description=smaller"]
    changed = with_values(source, settings)
    after = parse_device(changed)
    level = after.levels[after.index("smem")]
    assert level.capacity == 100 * 1024
    assert after.description == "smaller"
    assert after.digest() != before.digest()
    assert changed.text.count("#") == source.text.count("#")
    assert parse_device(with_values(source, [])).digest() == before.digest()


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("levels.smem.capacity", "sets nothing"),
        ("levels.smen.capacity=1KiB", "no 'smen' there"),
        ("name.first=x", "has no"),
    ],
)
def test_a_path_that_leads_nowhere_is_refused(setting, message):
    with pytest.raises(UsageError, match=message):
        with_values(device_source("a100"), [setting])
