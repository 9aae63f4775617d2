"""AccelForge's architectures as devices: bits, joules and actions per second."""

import pytest

from tilec.errors import ConfigError
from tilec.spec.device import DeviceSpec
from tilec.spec.foreign import Translated, translate
from tilec.spec.located import parse_yaml, validate

ARCH = """
variables: {lanes: 4}
workload: {}
arch:
  variables: {clock: 1e9}
  nodes:
  - !Memory
    name: Main
    size: inf
    area: 0
    tensors: {keep: ~Intermediates, may_keep: All}
    actions:
    - {name: read, energy: 4e-12, throughput: 8 * 100e9}
    - {name: write, energy: 6e-12, throughput: 8 * 50e9}
  - !Array
    name: chips
    spatial: [{name: X, fanout: 2}]
    nodes:
    - !Memory
      name: Buffer
      size: 1024 * 64 * 8
      throughput_scale: 2
      energy_scale: 0.5
      actions: [{name: read, energy: 16e-12, throughput: clock, bits_per_action: 64, latency: 3}]
    - !Toll {name: link, direction: down}
    - !Container
      name: Cell
      spatial: [{name: X, fanout: lanes}, {name: Y, fanout: 8}]
    - !Memory {name: In, size: 256 * 8, tensors: {keep: input}}
    - !Memory {name: Out, size: 64 * 8, tensors: {keep: output | weight}}
    - !Memory {name: Reg, size: weight.bits_per_value if weight else 0, spatial: [{name: Z, fanout: 3}]}
    - !Compute
      name: MAC
      actions: [{name: compute, energy: 0.5e-12, throughput: clock / 2}]
"""


def made(text: str = ARCH) -> tuple[DeviceSpec, Translated]:
    found = translate(text, "dir/arch.yaml", "mine")
    return validate(DeviceSpec, parse_yaml(found.text, "mine.yaml")), found


@pytest.mark.feature("O32")
def test_levels_energies_and_fanouts() -> None:
    device, found = made()
    assert (found.tool, device.description) == ("AccelForge", "from AccelForge's arch.yaml")
    assert device.level_names == ("Main", "Buffer", "In+Out")
    assert [level.units for level in device.levels] == [1, 2, 32]
    assert [level.capacity for level in device.levels] == [1 << 52, 65536, 320]
    assert device.bandwidth("Main") == 100 * 10**9
    assert device.bandwidth("Buffer") == 2 * 2 * 8 * 10**9
    assert device.bandwidth("In+Out") is None
    main, buffer, cells = device.levels
    assert main.access is not None
    assert (main.access.energy, main.access.bytes) == (40_000, 1)
    assert buffer.access is not None
    assert (buffer.access.energy, buffer.access.bytes) == (8000, 8)
    assert cells.access is None
    (mac,) = device.compute
    # Where the size of a memory depends on the workload, its fan-out stays.
    assert (mac.rate, mac.energy) == (2 * 64 * 3 * 5 * 10**8, 500)
    assert device.core_level == "Buffer"


def test_what_is_dropped_and_assumed_is_told() -> None:
    found = made()[1]
    assert found.dropped == (
        "file: workload",
        "Main: area, tensors",
        "Main: throughput of writes 4e+11, another than that of reads",
        "Buffer.read: latency",
        "link: the whole toll",
        "In: tensors",
        "Out: tensors",
        "Reg: the whole memory, its size depends on the workload (weight.bits_per_value if weight else 0)",
    )
    assert found.assumed == (
        "Main: an access costs the mean of a read and a write",
        "In: bandwidth without limit",
        "Out: bandwidth without limit",
        "MAC: products and sums of f32",
        "In and Out hold different tensors: one level of both capacities",
        "kernels start on Main, a core has Buffer",
        "Main: 4096 TiB, as good as unbounded",
    )


@pytest.mark.parametrize("keep", ["input", "~Main", "All"])
def test_memories_that_share_a_tensor_stay_apart(keep: str) -> None:
    device, _ = made(ARCH.replace("keep: output | weight", f"keep: {keep}"))
    assert device.level_names == ("Main", "Buffer", "In", "Out")


def test_a_unit_without_a_throughput() -> None:
    device, found = made(ARCH.replace(", throughput: clock / 2", ""))
    assert device.compute[0].rate == 2 * 64 * 3 * 10**9
    assert "MAC: 1e9 multiply-adds per second, its throughput is not told" in found.assumed


def test_odd_bits() -> None:
    device, found = made(ARCH.replace("64 * 8, tensors", "3, tensors").replace("256 * 8", "2053"))
    assert device.level("In+Out").capacity == 257
    device, found = made(ARCH.replace("1024 * 64 * 8", "3"))
    assert device.level("Buffer").capacity == 1
    assert "Buffer: one byte at least" in found.assumed


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("size: inf", "siz: inf", "dir/arch.yaml:7:5: Main has no size"),
        ("size: inf", "size: lots", "dir/arch.yaml:9:11: 'lots' has no value here\n  Write the bits."),
        ("size: inf", "size: -1", "dir/arch.yaml:9:11: -1 is less than 0"),
        ("fanout: lanes", "fanout: lines", "dir/arch.yaml:28:35: 'lines' has no value here"),
        ("fanout: lanes", "fanout: 0", "dir/arch.yaml:28:35: 0 is less than 1"),
        ("fanout: lanes", "fanout: 2 ** 23", "dir/arch.yaml:26:7: a fan-out of more than 16777216"),
        ("energy: 4e-12", "energy: -4", "dir/arch.yaml:13:28: -4 is less than 0"),
        ("bits_per_action: 64", "bits_per_action: inf", "dir/arch.yaml:24:82: expected a whole number up to 1048576"),
        ("energy: 4e-12", "energy: inf", "dir/arch.yaml:13:28: 'inf' is more than 1e+09"),
        ("!Toll", "!Tool", "dir/arch.yaml:25:7: unknown node !Tool"),
        ("!Toll ", "", "dir/arch.yaml:25:7: unknown node without a tag"),
        ("    size: inf\n", "    size: {% x %}\n", "dir/arch.yaml:9:11: a template that is not filled in"),
        ("    area: 0\n", "    area: [\n", "dir/arch.yaml:"),
    ],
)
def test_what_makes_no_sense_has_a_place(old: str, new: str, said: str) -> None:
    assert old in ARCH
    with pytest.raises(ConfigError) as caught:
        made(ARCH.replace(old, new))
    assert str(caught.value).startswith(said)
