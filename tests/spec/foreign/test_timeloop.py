"""Timeloop's architectures as devices: trees and lists of nodes, with their units."""

import pytest

from tilec.errors import ConfigError
from tilec.spec.device import DeviceSpec
from tilec.spec.foreign import Translated, translate
from tilec.spec.located import parse_yaml, validate

TREE = """
architecture:
  version: 0.3
  subtree:
  - name: chip
    attributes: {global_cycle_seconds: 2e-9, word-bits: 16, technology: 45nm}
    local:
    - {name: DRAM, class: LPDDR_DRAM, attributes: {width: 64, read_bandwidth: 8}}
    - {name: net, class: XY_NoC}
    subtree:
    - name: cluster[0..3]
      local:
      - name: scratch
        class: smartbuffer_SRAM
        attributes: {depth: 1024, width: 32, read_bandwidth: 4, write_bandwidth: 2, n_banks: 2}
      subtree:
      - name: lane[0..7]
        local:
        - {name: spad, class: regfile, attributes: {entries: 24}}
        - {name: mac, class: fpmac, attributes: {datawidth: 32}}
"""

NODES = """
architecture:
  version: 0.4
  nodes:
  - !Container {name: top, attributes: {depth_of: 256, datawidth: 8, global_cycle_seconds: 1e-9}}
  - !Component {name: dram, class: DRAM, attributes: {width: 64}}
  - !Component
    name: shared
    class: storage
    subclass: smartbuffer_SRAM
    attributes: {depth: depth_of * 4, width: 64, shared_bandwidth: 16}
    constraints: {dataspace: {keep: [Inputs]}}
  - !Container {name: columns, spatial: {meshX: 6}}
  - !Container {name: rows, spatial: {meshY: 2}}
  - !Parallel
    nodes:
    - !Component
      {name: weights, class: regfile, attributes: {depth: 32, width: 8}, constraints: {dataspace: {keep: [W]}}}
    - !Component
      {name: sums, class: regfile, attributes: {depth: 8, width: 16}, constraints: {dataspace: {keep: [O]}}}
    - !Nothing {}
  - !Component {name: mac, class: intmac, attributes: {multiplier_width: 8}, spatial: {meshX: 2}}
ERT:
  version: 0.4
  tables:
  - {name: "top.dram[1..1]", actions: [{name: read, energy: 512}, {name: write, energy: 600}]}
  - {name: top.weights, actions: [{name: write, energy: 0.5}]}
  - {name: top.mac, actions: [{name: compute, energy: 0.75}]}
"""


def made(text: str) -> tuple[DeviceSpec, Translated]:
    found = translate(text, "arch.yaml", "mine")
    return validate(DeviceSpec, parse_yaml(found.text, "mine.yaml")), found


@pytest.mark.feature("O32")
def test_a_tree() -> None:
    device, found = made(TREE)
    assert (device.name, found.tool, device.description) == ("mine", "Timeloop", "from Timeloop's arch.yaml")
    assert device.level_names == ("DRAM", "scratch", "spad")
    assert [device.instances(name) for name in device.level_names] == [1, 4, 32]
    assert [level.capacity for level in device.levels[1:]] == [4096, 48]
    # Words of 2 bytes at 500 MHz: 8 a cycle of one DRAM, 4 of each of four buffers.
    assert (device.bandwidth("DRAM"), device.bandwidth("scratch")) == (8 * 10**9, 16 * 10**9)
    assert device.bandwidth("scratch", 8) == 16 * 10**9
    assert device.bandwidth("spad") is None
    assert device.level("scratch").transaction.bytes == 4
    assert (device.launch_level, device.core_level) == ("DRAM", "scratch")
    (mac,) = device.compute
    assert (mac.inputs, mac.accumulator, mac.rate) == (("f32", "f32"), "f32", 2 * 32 * 500 * 10**6)
    assert found.dropped == (
        "net: the whole component of class 'xy_noc'",
        "scratch: n_banks",
        "scratch: write_bandwidth 2, another than the one for reads",
    )
    assert "spad: bandwidth without limit" in found.assumed
    assert "DRAM: 4096 TiB, as good as unbounded" in found.assumed
    assert all(f"#   {sentence}\n" in found.text for sentence in (*found.dropped, *found.assumed))


@pytest.mark.feature("O32")
def test_a_list_of_nodes_with_an_energy_table() -> None:
    device, found = made(NODES)
    assert device.level_names == ("dram", "shared", "weights+sums")
    assert [level.units for level in device.levels] == [1, 1, 12]
    assert [level.capacity for level in device.levels[1:]] == [8192, 32 + 16]
    assert device.bandwidth("shared") == 16 * 10**9
    dram, shared, both = device.levels
    assert dram.access is not None
    assert (dram.access.energy, dram.access.bytes) == (512_000, 8)
    assert both.access is not None
    assert (both.access.energy, both.access.bytes) == (500, 1)
    assert shared.access is None
    (mac,) = device.compute
    assert (mac.energy, mac.inputs, mac.rate) == (750, ("i8", "i8"), 2 * 24 * 10**9)
    assert "weights and sums hold different tensors: one level of both capacities" in found.assumed
    assert found.dropped[0] == "shared: constraints"
    assert "cycles of 1 ns: no global_cycle_seconds" not in found.assumed


def test_cycles_of_a_nanosecond_unless_told() -> None:
    device, found = made(TREE.replace("global_cycle_seconds: 2e-9, ", ""))
    assert device.bandwidth("DRAM") == 16 * 10**9
    assert found.assumed.count("cycles of 1 ns: no global_cycle_seconds") == 1


def test_instances_of_the_whole_and_other_ways_to_tell_a_size() -> None:
    text = TREE.replace("{entries: 24}", "{sizeKB: 1, instances: 16, cluster-size: 1}")
    device, _ = made(text)
    assert (device.instances("spad"), device.level("spad").capacity) == (16, 1024)
    assert made(text.replace("sizeKB: 1", "depth: 8, block-size: 4"))[0].level("spad").capacity == 64
    half = made(TREE.replace("read_bandwidth: 8", "bandwidth: 8"))[0]
    assert half.bandwidth("DRAM") == 4 * 10**9


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("depth: 1024, ", "", "arch.yaml:13:9: scratch has no capacity"),
        ("depth: 1024", "depth: deep", "arch.yaml:15:29: 'deep' has no value here\n  Write the number."),
        ("depth: 1024", "depth: -3", "arch.yaml:15:29: -3 is less than 0"),
        ("{entries: 24}", "{entries: 24, instances: 6}", "arch.yaml:19:11: 6 instances cannot share 4 of the memory"),
        ("{entries: 24}", "{entries: 24, instances: 1.5}", "arch.yaml:19:77: expected a whole number"),
        ("word-bits: 16", "word-bits: inf", "arch.yaml:8:7: datawidth of DRAM is inf"),
        ("name: chip", "nam: chip", "arch.yaml:5:5: key 'name' is missing"),
        ("subtree:\n  - name: chip", "trees:\n  - name: chip", "arch.yaml:3:3: neither 'nodes' nor 'subtree'"),
        ("class: fpmac", "class: adder", "arch.yaml: nothing computes"),
        ("version: 0.3", "version: {{version}}", "arch.yaml:3:12: a template that is not filled in"),
        ("architecture:", "arquitecture:", "arch.yaml: neither 'architecture' nor 'arch'"),
        ("  subtree:\n  - name: chip", "  subtree: 3\n  more:\n  - name: chip", "arch.yaml:4:12: expected a list"),
    ],
)
def test_what_makes_no_sense_has_a_place(old: str, new: str, said: str) -> None:
    assert old in TREE
    with pytest.raises(ConfigError) as caught:
        made(TREE.replace(old, new))
    assert str(caught.value).startswith(said)


def test_nodes_are_known_by_their_tags() -> None:
    with pytest.raises(ConfigError, match="arch.yaml:6:5: unknown node !Memory"):
        made(NODES.replace("!Component {name: dram", "!Memory {name: dram"))
    with pytest.raises(ConfigError, match="a device has two memories at least, here: only"):
        made("architecture: {nodes: [!Component {name: only, class: DRAM}, !Component {name: m, class: mac}]}")
