"""Values of a device file that are set by path."""

import pytest

from tilec.errors import ConfigError, UsageError
from tilec.spec.override import with_values
from tilec.spec.resolve import device_source, parse_device, resolve_device


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


def test_a_device_is_named_with_other_values(tmp_path):
    name = "a100[levels.smem.capacity=64KiB, levels.dram.access={energy: 1pJ, bytes: 8B}]"
    device = resolve_device(name)
    assert device.name == name  # so that plans and rows of a sweep say what they are for
    assert device.levels[device.index("smem")].capacity == 64 * 1024
    assert device.levels[0].access.energy == 1000
    (tmp_path / "mine.yaml").write_text(device_source("a100").text)
    assert resolve_device("mine.yaml[launch_overhead=3us]", relative_to=tmp_path).launch_overhead == 3_000_000
    with pytest.raises(ConfigError, match="64Kib") as error:
        resolve_device("a100[levels.smem.capacity=64Kib]")
    assert error.value.place.startswith("a100[levels.smem.capacity=64Kib]:")
    with pytest.raises(UsageError, match="no device is called 'a10'"):
        resolve_device("a10[launch_overhead=3us]")
