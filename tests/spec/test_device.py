"""The device model: counts over levels, bandwidths, peaks; wrong references are refused with a place."""

import pytest

from tilec.errors import ConfigError
from tilec.report.lint.files import lint_text
from tilec.spec.device import DeviceSpec
from tilec.spec.located import parse_yaml, validate
from tilec.spec.resolve import device_source, parse_device
from tilec.spec.source import Source

NODE = """
name: node
kind: two chips
levels:
  - {name: host, capacity: 64GiB, managed: explicit,
     bandwidth: {total: 16GB/s}, transaction: {element: 1B, shape: [64]}}
  - {name: dram, capacity: 16GiB, units: 2, managed: explicit, scope: chip,
     bandwidth: {total: 200GB/s, reader: 30GB/s}, transaction: {element: 1B, shape: [32]}}
  - {name: l2, capacity: 6MiB, managed: implicit, write_allocate: true,
     bandwidth: {total: 800GB/s}, transaction: {element: 1B, shape: [32]}}
  - {name: smem, capacity: 96KiB, units: 4, managed: explicit, scope: block, pool: l1,
     bandwidth: {total: 8TB/s, instance: 1TB/s}, transaction: {element: 4B, shape: [8, 4]}}
pools: {l1: 128KiB}
launch_level: dram
core_level: smem
launch_overhead: 3us
compute:
  - {name: fma, inputs: [f32, f32], accumulator: f32, tile: {n: 16}, rate: 10TFLOP/s}
  - {name: mma, inputs: [f16, f16], accumulator: f32, tile: {m: 16, n: 8, k: 16}, rate: 80TFLOP/s, scope: warp}
  - {name: slow, inputs: [f32, f32], accumulator: f32, rate: 1TFLOP/s}
target: {backend: cuda, processor: sm_70}
"""


def device(text: str = NODE) -> DeviceSpec:
    return validate(DeviceSpec, parse_yaml(text, "node.yaml"))


@pytest.mark.feature("W30")
def test_any_number_of_levels() -> None:
    node = device()
    assert node.level_names == ("host", "dram", "l2", "smem")
    assert [node.instances(name) for name in node.level_names] == [1, 2, 2, 8]
    assert node.cores == 8
    assert node.level("smem").capacity == 96 * 1024
    assert node.level("smem").transaction.bytes == 128
    assert node.pools == {"l1": 128 * 1024}
    assert node.launch_overhead == 3_000_000


def test_levels_that_share_a_pool() -> None:
    assert device().shared("smem") is None
    ipu = parse_device(device_source("ipu-mk2"))
    assert [ipu.shared(name) for name in ipu.level_names] == [None, ("sram", 624 << 10, 1472), ("sram", 624 << 10, 1)]
    cached = device(NODE.replace("managed: implicit", "managed: implicit, pool: l1"))
    assert cached.shared("smem") is None


def test_bandwidth_by_readers() -> None:
    node = device()
    gigabyte = 10**9
    assert node.bandwidth("dram") == 200 * gigabyte
    assert [node.bandwidth("dram", readers) // gigabyte for readers in (1, 2, 4, 8, 99)] == [30, 60, 120, 200, 200]
    assert [node.bandwidth("smem", readers) // gigabyte for readers in (1, 3, 8)] == [1000, 3000, 8000]
    assert node.bandwidth("l2", 1) == 400 * gigabyte


def test_peak_by_types() -> None:
    node = device()
    assert node.peak(("f32", "f32"), "f32") == 10 * 10**12
    assert node.peak(("f16", "f16"), "f32") == 80 * 10**12
    assert node.peak(("i8", "i8"), "i32") == 0


def test_energies_are_known_and_decide_nothing() -> None:
    text = NODE.replace("reader: 30GB/s}", "reader: 30GB/s}, access: {energy: 450pJ, bytes: 8B}")
    told = device(text.replace("rate: 10TFLOP/s", "rate: 10TFLOP/s, energy: 1.69pJ"))
    access = told.level("dram").access
    assert access is not None
    assert (access.energy, access.bytes) == (450_000, 8)
    assert [unit.energy for unit in told.compute] == [1690, None, None]
    assert told.digest() == device().digest()
    with pytest.raises(ConfigError, match="write an energy as '3.7pJ'"):
        device(text.replace("450pJ", "450"))


def test_digest_is_of_the_meaning() -> None:
    same = device("# a comment\n" + NODE.replace("64GiB", "65536MiB"))
    assert same.digest() == device().digest()
    assert device(NODE.replace("64GiB", "32GiB")).digest() != device().digest()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("launch_level: dram", "launch_level: dramm", "no level is called 'dramm'; did you mean 'dram'?"),
        (
            "core_level: smem",
            "core_level: xyz",
            "no level is called 'xyz'; the levels are host, dram, l2, smem",
        ),
        ("core_level: smem", "core_level: host", "core_level 'host' is below launch_level 'dram'"),
        (
            "{element: 4B, shape: [8, 4]}",
            "{element: 4B, shape: [8, 4]}, banks: 32",
            "key 'banks' is not supported: no cost",
        ),
        ("name: l2", "name: dram", "two levels are called 'dram'"),
        ("pools: {l1: 128KiB}\n", "", "level 'smem' shares pool 'l1', which is not given here"),
        ("96KiB", "-96KiB", "'-96KiB' is negative; bytes cannot be"),
        ("96KiB", "96KB/s", "'96KB/s' has the unit 'KB/s'; did you mean 'KB'?"),
        ("units: 4", "unit: 4", "unknown key 'unit'"),
        ("tile: {n: 16}", "tile: {q: 16}", "expected 'm', 'n' or 'k', found"),
        (
            "tile: {n: 16}",
            "tile: {m: 8, n: 16}, fragments: {a: {m: {lanes: 16}, k: {}}, b: {k: {}, n: {}}, c: {m: {}, n: {}}}",
            "fragment a takes 16 lanes of 1 along m, where the tile has 8",
        ),
        (
            "tile: {n: 16}",
            "tile: {n: 16}, fragments: {a: {m: {}}, b: {k: {}, n: {}}, c: {m: {}, n: {}}}",
            "fragment a has no span along k, where the tile has 1",
        ),
        (
            "tile: {n: 16}",
            "tile: {m: 64, n: 16}, warps: 4, fragments: {a: {m: {}, k: {}}, c: {m: {}, n: {}}}",
            "one factor has no fragment",
        ),
        (
            "tile: {n: 16}",
            "tile: {m: 64, n: 16}, least: {n: 8}, warps: 4, fragments: {c: {m: {}, n: {lanes: 4, vector: 4}}}",
            "fragment c takes 4 lanes of 4 along n, where the tile has 8",
        ),
    ],
)
def test_errors_have_places(old: str, new: str, message: str) -> None:
    with pytest.raises(ConfigError) as error:
        device(NODE.replace(old, new))
    assert message in str(error.value)
    assert str(error.value).startswith("node.yaml:")


@pytest.mark.parametrize(
    ("before", "after", "line", "message"),
    [
        ("inputs: [f16, f16]", "inputs: [f16, fp16]", 19, "no type is called 'fp16'; did you mean 'f16'?"),
        (
            "[f16, f16], accumulator: f32",
            "[f16, f16], accumulator: int8",
            19,
            "no type is called 'int8'; did you mean 'i8'?",
        ),
        ("{l1: 128KiB}", "{l1: 95KiB}", 11, "level smem takes 96KiB of its pool l1, which has 95KiB"),
        ("capacity: 6MiB", "capacity: 8B", 9, "level l2 holds 8 bytes, one transaction moves 32"),
    ],
)
def test_what_lint_calls_an_error_is_refused_everywhere(before: str, after: str, line: int, message: str) -> None:
    text = NODE.replace(before, after, 1)
    assert text != NODE
    (found,) = (each for each in lint_text(text, "node.yaml", None) if each.rule.severity == "error")
    assert (found.message.split(": ", 1)[-1], found.place.line) == (message, line)
    with pytest.raises(ConfigError) as error:
        parse_device(Source(text, "node.yaml"))
    assert (error.value.message, error.value.place) == (found.message, str(found.place))
    assert error.value.hint in (None, found.remedy)


def test_rates_of_floating_point_numbers() -> None:
    assert device().float_rate == 10**13
    assert device(NODE.replace("[f32, f32]", "[i8, i8]")).float_rate == 8 * 10**13
    assert device(NODE.replace("[f32, f32]", "[i8, i8]").replace("[f16, f16]", "[i8, i8]")).float_rate == 0
