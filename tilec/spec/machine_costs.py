"""Measured constants of a class of machine: what a device file does not say, and yet every prediction needs.

`MachineCosts` has the parameters that the search asks of any machine; `CpuCosts`, `GpuCosts` and `ScratchpadCosts` give
them the values of their class, `CpuCosts` with those that only code for CPUs asks beside them.  The search reads them
from its target model, code generators from their targets: what both know stands here once.  A ratio is a plain number;
other units are in the docstrings.  Times were measured on Zen 5 (AVX-512) and, with AVX2, on the same machine, unless a
parameter says otherwise.  A cycle is that of the target model: a core begins two multiply-adds of its width in it.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf


@dataclass(frozen=True, slots=True)
class MachineCosts:
    """Parameters of vectors, register tiles, tasks and caches."""

    # -- vectors -------------------------------------------------------------------------------------------

    interleaved: int = 4
    """Largest stride, in elements, and largest number of turns that strides take, at which vectors are shuffled out of
    whole loads."""
    shuffled: float = 0.5
    """Worth of a lane that is shuffled out of whole loads, beside one that is loaded with its neighbours."""
    gathered: float = 0.2
    """Worth of a lane that is loaded by itself."""
    masked: bool = False
    """Whether lanes of a vector may be idle: a width ends in one vector, otherwise in halves of vectors."""
    elementwise_vectors: int = 4
    """Vectors of an elementwise tile, and of one iteration of an elementwise loop: enough chains to hide the latency of
    a polynomial."""
    reuse_to_stage: int = 8
    """Times that an operand's elements must be read for its staging in another order to pay."""

    # -- register tiles ------------------------------------------------------------------------------------

    addition_latency: int = 4
    """Cycles from one addition to the next in a chain."""
    additions: int = 2
    """Multiply-adds that a core begins in a cycle."""
    conversion: float = 0.0
    """Multiply-adds in whose time a core converts a vector of half precision to the type that it computes in; 0: units
    load it converted."""
    broadcast_conversion: float = 0.0
    """The same of one element that is converted for all lanes."""
    decoding: float = 0.0
    """Multiply-adds in whose time a core executes an instruction that decodes or scales an operand; 0: units beside
    those for multiply-adds do it."""
    free_registers: int = 4
    """Registers left for loads where a point has several accumulators so that their chains are shorter."""
    loads: float = 1.6
    """Loads a cycle that a core of two load ports comes to (8 loads beside 7 multiply-adds 5.9 cycles, 6 beside 8 4.5
    to 5)."""
    tile_overhead: int = 8
    """Cycles around a register tile: addresses, loop, first loads."""
    cache_way: int = 4096
    """Bytes after which addresses fall into the same set of the nearest cache."""
    reduced_rows: int = 8
    """Rows of a row reduction that are reduced side by side."""
    lane_sum: int = 6
    """Cycles to add up the lanes of one accumulator."""
    ragged_panel: float = 1.1
    """Relative time of a width that does not divide its extent where weights are packed: they cannot be cut into
    panels."""
    crowded_level: float = 1.05
    """Relative time of a tile whose operands take more than half of a core's level: the core's tile has no room to be
    larger."""
    load_friction: float = 0.03
    """Part of the time for loads, and for what streams in, that does not hide behind arithmetic."""
    clipped_tile: float = 0.95
    """Last tiles are narrower where that takes less than this part of the time of the best tile that overlaps: their
    code is compiled, too."""
    narrower_tail: float = 1.1
    """Times that tiles of a size that varies take where the last one is narrower instead of overlapping the one before
    it (a guess: such tiles are guarded element by element). Where it is 1 last tiles are narrower."""
    rare_variant: float = 0.97
    """A further variant of a group pays where it takes no more than this part of the time without it at a size that is
    not likely; at likely ones it is 0.97."""
    scalar_registers: int = 96
    """Scalar registers of a thread that a tile is spread over at most."""
    fed_share: float = 1.0
    """Part of the bandwidth of a core's level that is there for operands in registers, beside everything else."""
    feed: tuple[float, float] = (0.0, inf)
    """Least and most bytes of it in a cycle."""

    # -- tasks ---------------------------------------------------------------------------------------------

    task: float = 10e-9
    """Seconds that a task takes beside its work."""
    round: float = 0.0
    """Seconds for which a task waits in every round of its reduce loops, and once before them, whatever it loads:
    latency and barriers.  Tasks that share a core hide it from each other."""
    phase: float = 0.0
    """Seconds that a task waits before each part but the first that loads what only it and later parts read."""
    arrival: float = 0.0
    """The same where loads began so long before that they have arrived."""
    join: float = 0.4e-6
    """Seconds until several cores have begun a launch and waited for each other, where launches themselves are free."""
    imbalance: float = 0.2
    """Part of a task for which the other cores wait at the end, on average."""
    exposed: float = 0.5
    """Part of the shorter of computing and transferring that does not hide behind the longer."""
    staging_copy: float = 4
    """Bandwidth of a core's level over that of a staging copy in it: a copy loads, stores and tests bounds."""
    spilled_steps: float = 0.9
    """Relative time that reduce steps must stay below where their sums go through a core's level."""
    latency_chains: int = 8
    """Independent operations of a unit of the highest level that hide latency as well as more units would."""
    resident_tasks: int = 16
    """Tasks that share a core at most."""
    addressing: int = 0
    """Instructions of a lane for a copy of fewer than `widest` bytes: it finds the element's row and column and tests
    both."""
    widest: int = 16
    """Bytes that a lane copies at once at most."""
    busy_units: int = 4
    """Units of each of a core's parts that keep it busy with such instructions, which wait for one another."""
    task_threads: int = 1024
    """Lanes that compute a task at most, where units of the highest level work side by side (CUDA C++ Programming
    Guide, Compute Capabilities; HIP the same)."""
    schedulers: int = 4
    """Parts of a core, each with as many of its warps and of its registers (CUDA C++ Programming Guide, Hardware
    Multithreading; also of HIP's)."""
    beside_points: int = 24
    """Registers of a lane beside those of the points of its tile: addresses, temporaries (rows and elements: 30 to 40
    in all on an H100)."""
    beside_sums: int = 64
    """The same of a contraction, whose operands are loaded in blocks (50 to 110 on an H100; the assembler refuses
    products by groups of warps with less than 26); it does with fewer where a block has many warps, but for groups of
    warps."""
    spilled: float = 4.0
    """Relative time of tasks whose units need more registers than a core has (a product of 4096 x 4096 x 4096 on an
    H100: 1777 us in tiles of 512 threads that need 192 registers and have 128, 431 us in tiles of 128)."""

    # -- caches --------------------------------------------------------------------------------------------

    usable_cache: float = 0.5
    """Part of a cache that a plan may count on: rows that lie a power of two apart meet in few of its sets, and what
    comes and goes needs room beside what stays (medians of four runs: an image-restoration network whose rows are
    64 KiB apart 612 ms with all of it, 503 with 0.6 of it, 476 with 0.45; a transformer 120 with all, 111 with
    half)."""

    @property
    def hiding_chains(self) -> int:
        """Independent accumulators that hide the latency of an addition."""
        return self.addition_latency * self.additions


@dataclass(frozen=True, slots=True)
class CpuCosts(MachineCosts):
    """Parameters of cores with vector registers and caches, and of the code that is generated for them."""

    fed_share: float = 0.5
    """Half of what a core's cache delivers."""
    feed: tuple[float, float] = (24.0, 32.0)
    """Measured bandwidths and rates are only lower bounds."""
    conversion: float = 1.3
    """vcvtph2ps runs at 0.75 of the rate of multiply-adds."""
    broadcast_conversion: float = 3.0
    """An element is inserted into a vector, converted and broadcast."""
    decoding: float = 0.3
    """Most instructions run beside the multiply-adds. A product of 4096 x 4096 weights of 4 bits that are decoded in
    registers takes, of the time with weights decoded at compile time, 0.77 for 8 rows and 1.32 for 32."""
    narrower_tail: float = 1.0
    """A product with 768 x 768 weights takes 1.01 of the time of code for 100 rows in tiles of 64 whose last one is
    narrower, 1.28 with the last one moved back."""
    rare_variant: float = 0.8
    """The code of a variant takes as long to generate as the search for its group: 0.8 s of a processor, measured over
    69 variants of a classifier of text lines. (With 0.8 its 28 different groups have 59 variants instead of 65, and
    lose 1.9 % instead of 3.5 % against the best tiles at likely sizes; a residual network 1.4 % instead of 8.6 %.)"""

    # -- tasks ---------------------------------------------------------------------------------------------

    staging_copy: float = 1.2
    """Fitted to the measured candidates of 109 groups of six networks on Emerald Rapids: the largest loss of a first
    choice is 16 % instead of 36 %, the rank correlation where candidates differ by more than 10 % 0.57 instead of 0.52.
    Guards of margins and halos stand outside of the loops that copy."""

    # -- which dimension becomes vectors -------------------------------------------------------------------

    folded: float = 0.25
    """Worth of a lane of a reduction whose lanes are added up at the end."""
    function_work: int = 25
    """Operations that a function such as exp takes."""

    # -- unrolling -----------------------------------------------------------------------------------------

    register_tile_work: int = 1200
    """Most operations of a tile on local buffers that are all unrolled, so that the buffers stay in registers."""
    reduce_body: int = 128
    """Most multiply-adds that unrolling a reduction puts into one loop body."""
    registers_per_step: int = 4
    """Registers for each step of a body that also unrolls a loop around its own, whose rounds read side by side (AVX2:
    convolutions of 3x3 over 512 channels 1.18 ms with two steps, 1.26 to 1.7 with six; with AVX-512, which has twice
    the registers, six steps take 0.92 of the time of two)."""
    window_steps: int = 32
    """Most points of a reduction that is unrolled altogether, such as the window of a depthwise convolution."""
    window_body: int = 320
    """Most multiply-adds of such a reduction at all points of a body."""
    window_points: int = 14
    """Most points of a body that go through such a reduction side by side, so that what they load stays in
    registers."""
    row_vectors: int = 4
    """Most vectors of a row of accumulators, where there are rows enough."""

    largest_body: int = 4096
    """Most multiply-adds or vectors of one body that a plan may ask for: the compiler takes minutes for more."""

    # -- what is fetched ahead, and what is stored past the caches -----------------------------------------

    line: int = 64
    """Bytes of a line of the caches."""
    fetch_elements: int = 4096
    """Fewest elements that must be new in a round of a loop for fetching them in the round before to be worth it."""
    fetch_lines: int = 4
    """Most lines that are fetched at once."""
    streamed_share: float = 0.5
    """Part of the last cache that a result must exceed to be stored past the caches (image restoration 3 to 5 %
    faster, all else as before)."""


@dataclass(frozen=True, slots=True)
class GpuCosts(MachineCosts):
    """Parameters of machines whose cores run many threads.

    Latencies are those of Abdelkhalik et al., Demystifying the Nvidia Ampere Architecture through Microbenchmarking
    (HPEC 2022): memory 290 cycles, second cache 200, shared memory 23.  Rates are those of compute capability 8.0 in
    the CUDA programming guide: 64 multiply-adds, 32 words of shared memory, 4 warps begun a clock.
    """

    masked: bool = True
    """Lanes of a warp have guards."""
    reduced_rows: int = 2
    """Warps hide each other's latency (an H100, 8 rows, 2 and 1: layer norm of 8192 rows of 768 f16 11.8, 10.8 and
    11.5 us, softmax of 12288 rows of 512 f32 24.1, 23.2 and 23.5)."""
    addition_latency: int = 0
    """Other threads compute while one waits for its sum: `latency_chains` says how many there must be."""
    loads: float = 1.0
    """Words a cycle from shared memory into registers of a core: 32 a clock beside 64 multiply-adds."""
    load_friction: float = 0.0
    """Loads and arithmetic of different warps overlap."""
    cache_way: int = 0
    """Shared memory has no sets."""
    staging_copy: float = 2
    """A copy loads and stores; other warps compute addresses meanwhile."""
    round: float = 0.25e-6
    """Memory 290, shared memory 23 and two barriers of 20 cycles at 1.41 GHz."""
    phase: float = 0.5e-6
    """Loads from memory, a barrier, and units that wait for the last of the part before (55 kernels of an H100 take
    0.9 us longer than the rest of the model says, and 1.1 us for each part that loads; plans that are priced so are
    no faster in all, those of half of it are)."""
    arrival: float = 0.03e-6
    """Shared memory 23 and a barrier of 20 cycles."""
    addressing: int = 43
    """Two parts of kernels on an H100 that copy 100,920 and 29,435 words one by one, rows of 145 of them, take 19 and
    13 us longer than the rest of the model says, of 24 and 7 warps a core."""


@dataclass(frozen=True, slots=True)
class ScratchpadCosts(MachineCosts):
    """Parameters of machines whose cores run one thread on a memory that programs fill.

    Ratios are those of CPUs: no measurement of such a machine is at hand.
    """

    cache_way: int = 0
    """A scratchpad has no sets."""
