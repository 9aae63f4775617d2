"""The memory that host code and runtime share: byte offsets in a job and in a pool, and their version.

A **job** is one run of a model: what to run, on which pointers, and per launch how far it has come.
A **pool** is what the worker threads watch. Both are zeroed, 64-byte aligned blocks that are never freed
while a worker lives, so that a late reader of a stale job pointer still reads a job.
"""

ABI = 3
"""Version of this layout and of the entry points; a library is loaded only when it was built for it."""

ENTRY = "tilec_entry"
"""Function of tvm_ffi in a library: number of an entry point -> its address."""
ENTRY_PARAMETERS = (1, 2, 1, 1)
"""How many i64 the entry points take: run(job), work(pool, worker), stop(pool), pause(count)."""

NUMBERS_ENTRY = "tilec_numbers_entry"
"""Function of tvm_ffi in the library of a model with symbols: the address of `void (int64* numbers, i64 part)`, which
computes a part of the numbers (`tilec.abi.shape_program`)."""

LINE = 64
"""Bytes of a cache line; words that different threads write stand on different lines."""

JOB_STATE = 0
"""i64: OPEN while helpers may join, plus the number of helpers inside; 0 means that the job may be reused."""
JOB_OPEN = 1 << 32
JOB_ENTRY = 64
"""pointer: the host function, `int32 (job, worker)`."""
JOB_LAUNCHES = 72
"""i64: number of launches."""
JOB_STRIDE = 80
"""i64: bytes from the counters of one launch to those of the next."""
JOB_THREADS = 88
"""i64: threads that may take part, the caller included."""
JOB_POOL = 96
"""pointer: the pool."""
JOB_SPINS = 104
"""i64: pauses before a wait goes to sleep."""
JOB_TABLE = 112
"""pointer: table of pointers to inputs, outputs, constants, the arenas, then the numbers of a model with symbols."""
JOB_SCRATCH = 120
"""pointer: scratch of thread 0."""
JOB_SCRATCH_STRIDE = 128
"""i64: bytes from the scratch of one thread to that of the next."""
JOB_GENERATION = 136
"""i64: counts the runs of this block, so that a worker does not join the same run twice."""
JOB_WIDTH = 144
"""i64: the most pieces that any launch can be cut into; 1 wakes nobody."""
JOB_SEGMENT = 152
"""i64: which part of the host function runs: the segment between two calls of onnxruntime."""
JOB_TIMES = 160
"""pointer: per launch two i64, the nanoseconds of the monotonic clock when its first task was taken and when its last
one was done; 0 when nobody asks."""
TIMES = 16
"""Bytes of the times of one launch."""
JOB_COUNTERS = 192
"""Per launch: i32 finished tasks, i32 sleeping threads, then for each thread i32 tasks taken from its share."""
COUNTER_SLEEPERS = 4
COUNTER_TAKEN = 8

POOL_SIGNAL = 0
"""i32, futex: incremented whenever there is news for the workers."""
POOL_SLEEPERS = 64
"""i32: workers that sleep or are about to."""
POOL_ACTIVE = 128
"""i64: callers and helpers that are running."""
POOL_THREADS = 192
"""i64: workers + 1."""
POOL_SPINS = 200
"""i64: pauses before an idle worker goes to sleep."""
POOL_STOP = 208
"""i64: nonzero makes the workers return."""
POOL_CPUS = 256
"""Bit per CPU (1024): a thread of this pool runs there."""
POOL_SLOTS = 384
"""Pointers to open jobs."""
SLOTS = 64
POOL_BYTES = POOL_SLOTS + 8 * SLOTS

IDLE_SPIN = 50e-6
"""Seconds that a worker spins for the next run before it sleeps: back-to-back runs need no system call."""

WAIT_SPIN = 20e-6
"""Seconds that a thread spins for another one's tasks before it sleeps."""


def counter_stride(threads: int) -> int:
    """Bytes of one launch's counters for jobs of `threads` threads, whole cache lines."""
    return -(-(COUNTER_TAKEN + 4 * threads) // LINE) * LINE


def job_bytes(launches: int, threads: int) -> int:
    """Bytes of a job block."""
    return JOB_COUNTERS + launches * counter_stride(threads)
