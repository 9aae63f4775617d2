/* Mapped weights, and the working memory that one run at a time uses: arenas, table of pointers, job, scratch. */

struct mapping {
    void *data;
    size_t bytes;
};

struct run {
    struct run *next;
    char *job, *scratch, *arena[ARENAS];
    int64_t arena_bytes[ARENAS], stride, numbers[NUMBERS + 1], table[TABLE + 1];
};

static int32_t map_file(const char *folder, const struct weights *file, struct mapping *mapping) {
    char path[4096];
    struct stat status;
    if (snprintf(path, sizeof path, "%s/%s", folder, file->name) >= (int)sizeof path)
        return refuse(TILEC_BAD_FILE, "the path of %s is too long", file->name);
    int handle = open(path, O_RDONLY | O_CLOEXEC);
    if (handle < 0) return refuse(TILEC_BAD_FILE, "cannot read %s: %s", path, strerror(errno));
    int known = !fstat(handle, &status) && status.st_size == file->bytes;
    mapping->bytes = (size_t)file->bytes;
    mapping->data = known && mapping->bytes ? mmap(NULL, mapping->bytes, PROT_READ, MAP_SHARED, handle, 0) : NULL;
    close(handle);
    if (!known) return refuse(TILEC_BAD_FILE, "%s has not the %lld bytes that were compiled", path, (long long)file->bytes);
    if (mapping->data == MAP_FAILED) {
        mapping->data = NULL;
        return refuse(TILEC_NO_MEMORY, "cannot map %s: %s", path, strerror(errno));
    }
    return TILEC_OK;
}

static void unmap(struct mapping *mapping) {
    if (mapping->data) munmap(mapping->data, mapping->bytes);
}

/* Lets an arena hold at least `bytes`, and half more than before when it grows. */
static int grow_arena(struct run *run, int number, int64_t bytes) {
    int64_t before = run->arena_bytes[number];
    if (run->arena[number] && before >= bytes) return 1;
    int64_t size = bytes > before / 2 * 3 ? bytes : before / 2 * 3;
    free(run->arena[number]);
    run->arena[number] = aligned_block((size_t)size, 0);
    run->arena_bytes[number] = run->arena[number] ? size : 0;
    run->table[FIRST_ARENA + number] = (int64_t)(intptr_t)run->arena[number];
    return run->arena[number] != NULL;
}

/* Lets every thread have at least `bytes` of scratch. */
static int grow_scratch(struct run *run, int64_t threads, int64_t bytes) {
    int64_t larger = bytes > run->stride / 2 * 3 ? bytes : run->stride / 2 * 3;
    if (run->scratch && run->stride >= bytes) return 1;
    free(run->scratch);
    run->stride = (larger + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    run->scratch = aligned_block((size_t)(run->stride * threads), 0);
    if (!run->scratch) run->stride = 0;
    *word(run->job, JOB_SCRATCH) = (int64_t)(intptr_t)run->scratch;
    *word(run->job, JOB_SCRATCH_STRIDE) = run->stride;
    return run->scratch != NULL;
}

/* Room for the tensors and the working memory of a run whose numbers are known, and as many threads as it can use. */
static int32_t resize_run(struct run *run, int64_t threads) {
    int room = grow_scratch(run, threads, SCRATCH_BYTES(run->numbers));
    for (int number = 0; number < ARENAS; number++) room &= grow_arena(run, number, ARENA_BYTES(number, run->numbers));
    *word(run->job, JOB_WIDTH) = WIDTH(run->numbers);
    return room ? TILEC_OK : refuse(TILEC_NO_MEMORY, "no memory for the tensors of a run");
}

static void free_run(struct run *run) {
    for (int number = 0; number < ARENAS; number++) free(run->arena[number]);
    free(run->scratch);
    free(run->job);
    free(run);
}

static struct run *new_run(const struct pool *pool, const struct mapping *files) {
    int64_t stride = (COUNTER_TAKEN + 4 * pool->threads + LINE - 1) / LINE * LINE;
    struct run *run = calloc(1, sizeof *run);
    if (!run) return NULL;
    run->job = aligned_block((size_t)(JOB_COUNTERS + LAUNCHES * stride), 1);
    if (!run->job) {
        free(run);
        return NULL;
    }
    *word(run->job, JOB_LAUNCHES) = LAUNCHES;
    *word(run->job, JOB_STRIDE) = stride;
    *word(run->job, JOB_THREADS) = pool->threads;
    *word(run->job, JOB_POOL) = (int64_t)(intptr_t)pool->block;
    *word(run->job, JOB_SPINS) = pool->wait_spins;
    *word(run->job, JOB_TABLE) = (int64_t)(intptr_t)run->table;
    for (int n = 0; n < CONSTANTS; n++)
        run->table[INPUTS + OUTPUTS + n] = (int64_t)(intptr_t)files[constants[n].file].data + constants[n].offset;
    run->table[FIRST_ARENA + ARENAS] = (int64_t)(intptr_t)run->numbers;
    return run;
}
