; How threads share a run: task ranges from counters, waits for finished tasks, workers that help and sleep.
;
; Every participating thread executes the same host function. For each launch it takes ranges of tasks until
; none is left; before a launch it waits until the tasks of the launches it depends on are counted as done.
; Nobody waits for a thread to arrive, only for tasks: a caller whose workers sleep or are preempted does the
; work alone. Ranges are guided (Polychronopoulos and Kuck, 1987): a quarter of what is left, first in the
; thread's own share, which keeps its caches warm, then in the others'.
;
; $$NAMES are offsets of tilec/abi/job_layout.py, filled in before compilation.

source_filename = "threads.ll"
target triple = "$TRIPLE"

declare i64 @syscall(i64, ...)
declare i32 @sched_getcpu()
declare i32 @sched_getaffinity(i32, i64, ptr)
declare i32 @sched_setaffinity(i32, i64, ptr)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare i32 @clock_gettime(i32, ptr)
$PAUSE_DECLARATION

declare i32 @tilec_main(ptr, i64)

; ---------------------------------------------------------------------------------------------- futex

define internal void @sleep_on(ptr %word, i32 %seen) {
  %r = call i64 (i64, ...) @syscall(i64 $FUTEX, ptr %word, i64 128, i32 %seen, ptr null, ptr null, i64 0)
  ret void
}

define internal void @wake_all(ptr %word) {
  %r = call i64 (i64, ...) @syscall(i64 $FUTEX, ptr %word, i64 129, i32 2147483647, ptr null, ptr null, i64 0)
  ret void
}

; --------------------------------------------------------------------------- called by the host function

; The address `offset` bytes into entry `index` of the job's pointer table.
define ptr @tilec_at(ptr %job, i64 %index, i64 %offset) {
  %table.p = getelementptr i8, ptr %job, i64 $JOB_TABLE
  %table = load ptr, ptr %table.p
  %entry.p = getelementptr ptr, ptr %table, i64 %index
  %base = load ptr, ptr %entry.p
  %address = getelementptr i8, ptr %base, i64 %offset
  ret ptr %address
}

; The scratch block of one thread.
define ptr @tilec_scratch(ptr %job, i64 %worker) {
  %base.p = getelementptr i8, ptr %job, i64 $JOB_SCRATCH
  %base = load ptr, ptr %base.p
  %stride.p = getelementptr i8, ptr %job, i64 $JOB_SCRATCH_STRIDE
  %stride = load i64, ptr %stride.p
  %offset = mul i64 %stride, %worker
  %address = getelementptr i8, ptr %base, i64 %offset
  ret ptr %address
}

; The segment of the host function that the job runs.
define i64 @tilec_segment(ptr %job) {
  %segment.p = getelementptr i8, ptr %job, i64 $JOB_SEGMENT
  %segment = load i64, ptr %segment.p
  ret i64 %segment
}

define internal ptr @counters(ptr %job, i64 %launch) alwaysinline {
  %stride.p = getelementptr i8, ptr %job, i64 $JOB_STRIDE
  %stride = load i64, ptr %stride.p
  %offset = mul i64 %launch, %stride
  %first = getelementptr i8, ptr %job, i64 $JOB_COUNTERS
  %address = getelementptr i8, ptr %first, i64 %offset
  ret ptr %address
}

; Where somebody wants the times of a launch, else null.
define internal ptr @times(ptr %job, i64 %launch) alwaysinline {
  %times.p = getelementptr i8, ptr %job, i64 $JOB_TIMES
  %times = load ptr, ptr %times.p
  %nobody = icmp eq ptr %times, null
  %offset = mul i64 %launch, $TIMES
  %own = getelementptr i8, ptr %times, i64 %offset
  %found = select i1 %nobody, ptr null, ptr %own
  ret ptr %found
}

; Nanoseconds of the monotonic clock.
define internal i64 @clock() noinline {
  %time = alloca { i64, i64 }
  %r = call i32 @clock_gettime(i32 1, ptr %time)
  %seconds = load i64, ptr %time
  %part.p = getelementptr i8, ptr %time, i64 8
  %part = load i64, ptr %part.p
  %whole = mul i64 %seconds, 1000000000
  %now = add i64 %whole, %part
  ret i64 %now
}

; A range of tasks for this thread, end << 32 | begin; 0 when none is left.
define i64 @tilec_next(ptr %job, i64 %launch, i64 %worker, i64 %tasks, i64 %grain) {
entry:
  %counters = call ptr @counters(ptr %job, i64 %launch)
  %taken = getelementptr i8, ptr %counters, i64 $COUNTER_TAKEN
  %threads.p = getelementptr i8, ptr %job, i64 $JOB_THREADS
  %threads = load i64, ptr %threads.p
  %pieces = udiv i64 %tasks, %grain
  %scarce = icmp ult i64 %pieces, %threads
  %fewer = select i1 %scarce, i64 %pieces, i64 %threads
  %no.share = icmp eq i64 %fewer, 0
  %shares = select i1 %no.share, i64 1, i64 %fewer
  %home = urem i64 %worker, %shares
  br label %visit
visit:
  %visited = phi i64 [ 0, %entry ], [ %visited.next, %empty ]
  %unwrapped = add i64 %home, %visited
  %beyond = icmp uge i64 %unwrapped, %shares
  %wrapped = sub i64 %unwrapped, %shares
  %share = select i1 %beyond, i64 %wrapped, i64 %unwrapped
  %low.product = mul i64 %share, %tasks
  %low = udiv i64 %low.product, %shares
  %high.product = add i64 %low.product, %tasks
  %high = udiv i64 %high.product, %shares
  %size = sub i64 %high, %low
  %word = getelementptr i32, ptr %taken, i64 %share
  %first = load atomic i32, ptr %word monotonic, align 4
  br label %attempt
attempt:
  %used = phi i32 [ %first, %visit ], [ %found, %again ]
  %used.64 = zext i32 %used to i64
  %left = sub i64 %size, %used.64
  %none = icmp sle i64 %left, 0
  br i1 %none, label %empty, label %take
take:
  %left.3 = add i64 %left, 3
  %quarter = lshr i64 %left.3, 2
  %small = icmp ult i64 %quarter, %grain
  %guided = select i1 %small, i64 %grain, i64 %quarter
  %rest = sub i64 %left, %guided
  %crumb = icmp slt i64 %rest, %grain
  %alone = icmp eq i64 %threads, 1
  %all = or i1 %crumb, %alone
  %count = select i1 %all, i64 %left, i64 %guided
  %now.64 = add i64 %used.64, %count
  %now = trunc i64 %now.64 to i32
  %exchange = cmpxchg ptr %word, i32 %used, i32 %now monotonic monotonic, align 4
  %won = extractvalue { i32, i1 } %exchange, 1
  br i1 %won, label %mine, label %again
again:
  %found = extractvalue { i32, i1 } %exchange, 0
  br label %attempt
mine:
  %times = call ptr @times(ptr %job, i64 %launch)
  %untimed = icmp eq ptr %times, null
  br i1 %untimed, label %range, label %timed
timed:
  %now.ns = call i64 @clock()
  %earliest = atomicrmw umin ptr %times, i64 %now.ns monotonic, align 8
  br label %range
range:
  %begin = add i64 %low, %used.64
  %end = add i64 %begin, %count
  %end.high = shl i64 %end, 32
  %taken.range = or i64 %end.high, %begin
  ret i64 %taken.range
empty:
  %visited.next = add i64 %visited, 1
  %more = icmp ult i64 %visited.next, %shares
  br i1 %more, label %visit, label %nothing
nothing:
  ret i64 0
}

; Counts `count` tasks as done, once all that they stored is to be seen, past the caches or not: the addition is
; locked, or releases. The last one rouses those who sleep on the launch. The time is noted before: once all tasks
; count as done the caller may give the memory of the times away.
define void @tilec_done(ptr %job, i64 %launch, i64 %tasks, i64 %count) {
  %times = call ptr @times(ptr %job, i64 %launch)
  %untimed = icmp eq ptr %times, null
  br i1 %untimed, label %counted, label %timed
timed:
  %now.ns = call i64 @clock()
  %end.p = getelementptr i8, ptr %times, i64 8
  %latest = atomicrmw umax ptr %end.p, i64 %now.ns monotonic, align 8
  br label %counted
counted:
  %counters = call ptr @counters(ptr %job, i64 %launch)
  %count.32 = trunc i64 %count to i32
  %tasks.32 = trunc i64 %tasks to i32
  %before = atomicrmw add ptr %counters, i32 %count.32 seq_cst, align 4
  %now = add i32 %before, %count.32
  %last = icmp eq i32 %now, %tasks.32
  br i1 %last, label %finished, label %out
finished:
  %sleepers.p = getelementptr i8, ptr %counters, i64 $COUNTER_SLEEPERS
  %sleepers = load atomic i32, ptr %sleepers.p seq_cst, align 4
  %any = icmp ne i32 %sleepers, 0
  br i1 %any, label %rouse, label %out
rouse:
  call void @wake_all(ptr %counters)
  br label %out
out:
  ret void
}

; Returns 0 when all tasks of the launch are done, 1 to a helper that must leave because callers want the cores.
define i32 @tilec_wait(ptr %job, i64 %launch, i64 %worker, i64 %tasks) {
entry:
  %helper = icmp ne i64 %worker, 0
  br i1 %helper, label %crowd, label %begin
crowd:
  %pool.p = getelementptr i8, ptr %job, i64 $JOB_POOL
  %pool = load ptr, ptr %pool.p
  %active.p = getelementptr i8, ptr %pool, i64 $POOL_ACTIVE
  %active = load atomic i64, ptr %active.p monotonic, align 8
  %threads.p = getelementptr i8, ptr %job, i64 $JOB_THREADS
  %threads = load i64, ptr %threads.p
  %crowded = icmp ugt i64 %active, %threads
  br i1 %crowded, label %leave, label %begin
leave:
  ret i32 1
begin:
  %counters = call ptr @counters(ptr %job, i64 %launch)
  %tasks.32 = trunc i64 %tasks to i32
  %spins.p = getelementptr i8, ptr %job, i64 $JOB_SPINS
  %spins = load i64, ptr %spins.p
  br label %spin
spin:
  %patience = phi i64 [ %spins, %begin ], [ %patience.less, %rest ]
  %done = load atomic i32, ptr %counters acquire, align 4
  %ready = icmp eq i32 %done, %tasks.32
  br i1 %ready, label %out, label %tire
tire:
  %patience.less = sub i64 %patience, 1
  %tired = icmp slt i64 %patience.less, 0
  br i1 %tired, label %doze, label %rest
rest:
  $PAUSE
  br label %spin
doze:
  %sleepers.p = getelementptr i8, ptr %counters, i64 $COUNTER_SLEEPERS
  %in = atomicrmw add ptr %sleepers.p, i32 1 seq_cst, align 4
  br label %check
check:
  %seen = load atomic i32, ptr %counters seq_cst, align 4
  %complete = icmp eq i32 %seen, %tasks.32
  br i1 %complete, label %awake, label %block
block:
  call void @sleep_on(ptr %counters, i32 %seen)
  br label %check
awake:
  %gone = atomicrmw sub ptr %sleepers.p, i32 1 seq_cst, align 4
  br label %out
out:
  ret i32 0
}

; --------------------------------------------------------------------------------------- where threads run
; A virtual machine's kernel often wakes a worker on its caller's CPU, because halted CPUs count as busy, and
; the two share it for milliseconds. A helper that finds itself on a CPU in use moves off once and takes its
; own mask back.

; Notes the CPU of this thread in the pool's bitmap; bit 16 of the result tells that it was there already.
define internal i64 @occupy(ptr %pool) {
  %cpu = call i32 @sched_getcpu()
  %known = and i32 %cpu, 1023
  %known.64 = zext i32 %known to i64
  %word = lshr i64 %known.64, 6
  %shift = and i64 %known.64, 63
  %bit = shl i64 1, %shift
  %words = getelementptr i8, ptr %pool, i64 $POOL_CPUS
  %word.p = getelementptr i64, ptr %words, i64 %word
  %before = atomicrmw or ptr %word.p, i64 %bit monotonic, align 8
  %had = and i64 %before, %bit
  %taken = icmp ne i64 %had, 0
  %flag = select i1 %taken, i64 65536, i64 0
  %result = or i64 %known.64, %flag
  ret i64 %result
}

define internal void @vacate(ptr %pool, i64 %place) {
  %cpu = and i64 %place, 1023
  %word = lshr i64 %cpu, 6
  %shift = and i64 %cpu, 63
  %bit = shl i64 1, %shift
  %others = xor i64 %bit, -1
  %words = getelementptr i8, ptr %pool, i64 $POOL_CPUS
  %word.p = getelementptr i64, ptr %words, i64 %word
  %before = atomicrmw and ptr %word.p, i64 %others monotonic, align 8
  ret void
}

; Occupies a CPU that no other thread of the pool uses, if this thread may run on one.
define internal i64 @settle(ptr %pool) {
entry:
  %own = alloca [16 x i64], align 8
  %free = alloca [16 x i64], align 8
  %words = getelementptr i8, ptr %pool, i64 $POOL_CPUS
  %place = call i64 @occupy(ptr %pool)
  %shared = icmp uge i64 %place, 65536
  br i1 %shared, label %ask, label %out
ask:
  call void @llvm.memset.p0.i64(ptr %own, i8 0, i64 128, i1 false)
  %asked = call i32 @sched_getaffinity(i32 0, i64 128, ptr %own)
  %known = icmp sge i32 %asked, 0
  br i1 %known, label %mask, label %out
mask:
  %i = phi i64 [ 0, %ask ], [ %i.next, %mask ]
  %any = phi i64 [ 0, %ask ], [ %any.next, %mask ]
  %own.p = getelementptr i64, ptr %own, i64 %i
  %allowed = load i64, ptr %own.p
  %used.p = getelementptr i64, ptr %words, i64 %i
  %used = load atomic i64, ptr %used.p monotonic, align 8
  %unused = xor i64 %used, -1
  %idle = and i64 %allowed, %unused
  %free.p = getelementptr i64, ptr %free, i64 %i
  store i64 %idle, ptr %free.p
  %any.next = or i64 %any, %idle
  %i.next = add i64 %i, 1
  %more = icmp ult i64 %i.next, 16
  br i1 %more, label %mask, label %decide
decide:
  %room = icmp ne i64 %any.next, 0
  br i1 %room, label %move, label %out
move:
  %moved = call i32 @sched_setaffinity(i32 0, i64 128, ptr %free)
  %restored = call i32 @sched_setaffinity(i32 0, i64 128, ptr %own)
  %place.new = call i64 @occupy(ptr %pool)
  br label %out
out:
  %result = phi i64 [ %place, %entry ], [ %place, %ask ], [ %place, %decide ], [ %place.new, %move ]
  ret i64 %result
}

; ------------------------------------------------------------------------------------------ a caller's run

define internal void @run(ptr %job) {
entry:
  %pool.p = getelementptr i8, ptr %job, i64 $JOB_POOL
  %pool = load ptr, ptr %pool.p
  %active.p = getelementptr i8, ptr %pool, i64 $POOL_ACTIVE
  %before = atomicrmw add ptr %active.p, i64 1 seq_cst, align 8
  %entry.p = getelementptr i8, ptr %job, i64 $JOB_ENTRY
  store ptr @tilec_main, ptr %entry.p
  %launches.p = getelementptr i8, ptr %job, i64 $JOB_LAUNCHES
  %launches = load i64, ptr %launches.p
  %stride.p = getelementptr i8, ptr %job, i64 $JOB_STRIDE
  %stride = load i64, ptr %stride.p
  %bytes = mul i64 %launches, %stride
  %counters = getelementptr i8, ptr %job, i64 $JOB_COUNTERS
  call void @llvm.memset.p0.i64(ptr align 64 %counters, i8 0, i64 %bytes, i1 false)
  %generation.p = getelementptr i8, ptr %job, i64 $JOB_GENERATION
  %generation = load i64, ptr %generation.p
  %generation.next = add i64 %generation, 1
  store atomic i64 %generation.next, ptr %generation.p monotonic, align 8
  store atomic i64 $JOB_OPEN, ptr %job release, align 8
  %threads.p = getelementptr i8, ptr %job, i64 $JOB_THREADS
  %threads = load i64, ptr %threads.p
  %width.p = getelementptr i8, ptr %job, i64 $JOB_WIDTH
  %width = load i64, ptr %width.p
  %room = icmp ult i64 %before, %threads
  %several = icmp ugt i64 %threads, 1
  %wide = icmp ugt i64 %width, 1
  %room.several = and i1 %room, %several
  %share = and i1 %room.several, %wide
  %slots = getelementptr i8, ptr %pool, i64 $POOL_SLOTS
  br i1 %share, label %search, label %alone
alone:
  %alone.r = call i32 @tilec_main(ptr %job, i64 0)
  br label %finish
search:
  %i = phi i64 [ 0, %entry ], [ %i.next, %taken ]
  %slot = getelementptr ptr, ptr %slots, i64 %i
  %exchange = cmpxchg ptr %slot, ptr null, ptr %job seq_cst monotonic, align 8
  %won = extractvalue { ptr, i1 } %exchange, 1
  br i1 %won, label %publish, label %taken
taken:
  %i.next = add i64 %i, 1
  %more = icmp ult i64 %i.next, $SLOTS
  br i1 %more, label %search, label %alone
publish:
  %place = call i64 @occupy(ptr %pool)
  %signal = atomicrmw add ptr %pool, i32 1 seq_cst, align 4
  %sleepers.p = getelementptr i8, ptr %pool, i64 $POOL_SLEEPERS
  %sleepers = load atomic i32, ptr %sleepers.p seq_cst, align 4
  %any = icmp ne i32 %sleepers, 0
  br i1 %any, label %rouse, label %go
rouse:
  call void @wake_all(ptr %pool)
  br label %go
go:
  %shared.r = call i32 @tilec_main(ptr %job, i64 0)
  store atomic ptr null, ptr %slot release, align 8
  call void @vacate(ptr %pool, i64 %place)
  br label %finish
finish:
  %closed = atomicrmw sub ptr %job, i64 $JOB_OPEN acq_rel, align 8
  %after = atomicrmw sub ptr %active.p, i64 1 seq_cst, align 8
  ret void
}

; ------------------------------------------------------------------------------------------ a worker's life

define internal void @work(ptr %pool, i64 %worker) {
entry:
  %slots = getelementptr i8, ptr %pool, i64 $POOL_SLOTS
  %sleepers.p = getelementptr i8, ptr %pool, i64 $POOL_SLEEPERS
  %active.p = getelementptr i8, ptr %pool, i64 $POOL_ACTIVE
  %threads.p = getelementptr i8, ptr %pool, i64 $POOL_THREADS
  %spins.p = getelementptr i8, ptr %pool, i64 $POOL_SPINS
  %stop.p = getelementptr i8, ptr %pool, i64 $POOL_STOP
  %threads = load i64, ptr %threads.p
  %spins = load i64, ptr %spins.p
  br label %look
look:
  %last.job = phi ptr [ null, %entry ], [ %last.job, %spin ], [ %last.job, %sleep ], [ %job, %help ]
  %last.generation = phi i64 [ 0, %entry ], [ %last.generation, %spin ], [ %last.generation, %sleep ], [ %generation, %help ]
  %signal = load atomic i32, ptr %pool seq_cst, align 4
  %stop = load atomic i64, ptr %stop.p acquire, align 8
  %stopped = icmp ne i64 %stop, 0
  br i1 %stopped, label %out, label %scan
out:
  ret void
scan:
  %i = phi i64 [ 0, %look ], [ %i.next, %next ]
  %slot = getelementptr ptr, ptr %slots, i64 %i
  %job = load atomic ptr, ptr %slot acquire, align 8
  %vacant = icmp eq ptr %job, null
  br i1 %vacant, label %next, label %peek
peek:
  %generation.p = getelementptr i8, ptr %job, i64 $JOB_GENERATION
  %generation = load atomic i64, ptr %generation.p monotonic, align 8
  %same.job = icmp eq ptr %job, %last.job
  %same.generation = icmp eq i64 %generation, %last.generation
  %same = and i1 %same.job, %same.generation
  br i1 %same, label %next, label %count
count:
  %active = load atomic i64, ptr %active.p monotonic, align 8
  %room = icmp ult i64 %active, %threads
  br i1 %room, label %state, label %next
state:
  %now = load atomic i64, ptr %job acquire, align 8
  %open = icmp uge i64 %now, $JOB_OPEN
  br i1 %open, label %join, label %next
join:
  %joined = add i64 %now, 1
  %exchange = cmpxchg ptr %job, i64 %now, i64 %joined acq_rel monotonic, align 8
  %in = extractvalue { i64, i1 } %exchange, 1
  br i1 %in, label %help, label %state
help:
  %more.active = atomicrmw add ptr %active.p, i64 1 seq_cst, align 8
  %place = call i64 @settle(ptr %pool)
  %entry.p = getelementptr i8, ptr %job, i64 $JOB_ENTRY
  %main = load ptr, ptr %entry.p
  %r = call i32 %main(ptr %job, i64 %worker)
  call void @vacate(ptr %pool, i64 %place)
  %less.active = atomicrmw sub ptr %active.p, i64 1 seq_cst, align 8
  %left = atomicrmw sub ptr %job, i64 1 acq_rel, align 8
  br label %look
next:
  %i.next = add i64 %i, 1
  %more = icmp ult i64 %i.next, $SLOTS
  br i1 %more, label %scan, label %spin.begin
spin.begin:
  br label %spin
spin:
  %patience = phi i64 [ %spins, %spin.begin ], [ %patience.less, %rest ]
  %news = load atomic i32, ptr %pool monotonic, align 4
  %changed = icmp ne i32 %news, %signal
  br i1 %changed, label %look, label %tire
tire:
  %patience.less = sub i64 %patience, 1
  %tired = icmp slt i64 %patience.less, 0
  br i1 %tired, label %sleep, label %rest
rest:
  $PAUSE
  br label %spin
sleep:
  %falling = atomicrmw add ptr %sleepers.p, i32 1 seq_cst, align 4
  call void @sleep_on(ptr %pool, i32 %signal)
  %rising = atomicrmw sub ptr %sleepers.p, i32 1 seq_cst, align 4
  br label %look
}

; ------------------------------------------------------------------------------------------------ entries

define internal void @stop(ptr %pool) {
  %stop.p = getelementptr i8, ptr %pool, i64 $POOL_STOP
  store atomic i64 1, ptr %stop.p release, align 8
  %signal = atomicrmw add ptr %pool, i32 1 seq_cst, align 4
  call void @wake_all(ptr %pool)
  ret void
}

; That many pauses, for timing one.
define internal void @pause(i64 %pauses) {
entry:
  br label %spin
spin:
  %left = phi i64 [ %pauses, %entry ], [ %less, %spin ]
  $PAUSE
  %less = sub i64 %left, 1
  %more = icmp sgt i64 %less, 0
  br i1 %more, label %spin, label %out
out:
  ret void
}

@entries = internal constant [4 x ptr] [ptr @run, ptr @work, ptr @stop, ptr @pause]

; The address of entry run, work, stop or pause, as a function of tvm_ffi: one integer to an integer.
define i32 @__tvm_ffi_tilec_entry(ptr %self, ptr %args, i32 %count, ptr %result) {
  %number.p = getelementptr i8, ptr %args, i64 8
  %number = load i64, ptr %number.p
  %entry.p = getelementptr ptr, ptr @entries, i64 %number
  %entry = load i64, ptr %entry.p
  store i32 1, ptr %result
  %value.p = getelementptr i8, ptr %result, i64 8
  store i64 %entry, ptr %value.p
  ret i32 0
}
