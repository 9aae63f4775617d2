"""What hipcc says of kernels is read from the metadata of its assembly."""

from tests.gpu_zoo.hip import uses

ASSEMBLY = """
	.amdhsa_private_segment_fixed_size 192
	.amdgpu_metadata
---
amdhsa.kernels:
  - .agpr_count:     0
    .args:
      - .name:           x
        .size:           8
    .name:           first
    .private_segment_fixed_size: 192
    .vgpr_count:     80
    .vgpr_spill_count: 0
  - .agpr_count:     0
    .name:           second
    .private_segment_fixed_size: 0
    .vgpr_count:     23
amdhsa.target:   amdgcn-amd-amdhsa--gfx90a
amdhsa.version:
  - 1
  - 1
"""


def test_registers_and_bytes_in_memory_of_each_kernel() -> None:
    assert uses(ASSEMBLY) == [
        {"name": "first", "vgpr_count": "80", "private_segment_fixed_size": "192"},
        {"name": "second", "vgpr_count": "23", "private_segment_fixed_size": "0"},
    ]
