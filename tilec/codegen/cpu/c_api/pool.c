/* Worker threads of a session. They wait in compiled code and help whichever run is open. */

typedef void (*entry_1)(int64_t);
typedef void (*entry_2)(int64_t, int64_t);

extern int32_t __tvm_ffi_tilec_entry(void *self, void *arguments, int32_t count, void *result);

struct pool {
    char *block;
    int64_t threads, wait_spins;
    pthread_t *workers;
    int64_t started;
};

struct worker {
    char *block;
    int64_t number;
};

/* Entry point run (0), work (1), stop (2) or pause (3). */
static int64_t entry(int64_t number) {
    int64_t argument[2] = {1, number}, result[2] = {0, 0};
    __tvm_ffi_tilec_entry(NULL, argument, 1, result);
    return result[1];
}

static double pause_seconds(void) {
    const int64_t pauses = 2000;
    double shortest = 1;
    for (int round = 0; round < 3; round++) {
        struct timespec start, end;
        clock_gettime(CLOCK_MONOTONIC, &start);
        ((entry_1)entry(3))(pauses);
        clock_gettime(CLOCK_MONOTONIC, &end);
        double seconds = (double)(end.tv_sec - start.tv_sec) + 1e-9 * (double)(end.tv_nsec - start.tv_nsec);
        if (seconds < shortest) shortest = seconds;
    }
    return shortest / (double)pauses > 1e-9 ? shortest / (double)pauses : 1e-9;
}

static void *work(void *argument) {
    struct worker worker = *(struct worker *)argument;
    free(argument);
    ((entry_2)entry(1))((int64_t)(intptr_t)worker.block, worker.number);
    return NULL;
}

static int start_worker(struct pool *pool, int64_t number) {
    struct worker *worker = malloc(sizeof *worker);
    if (!worker) return 0;
    worker->block = pool->block;
    worker->number = number;
    if (pthread_create(&pool->workers[pool->started], NULL, work, worker)) {
        free(worker);
        return 0;
    }
    pool->started++;
    return 1;
}

static void stop_pool(struct pool *pool) {
    if (pool->started) ((entry_1)entry(2))((int64_t)(intptr_t)pool->block);
    for (int64_t n = 0; n < pool->started; n++) pthread_join(pool->workers[n], NULL);
    free(pool->workers);
    free(pool->block);
}

/* Starts `threads - 1` workers, which take no signals. */
static int32_t start_pool(struct pool *pool, int64_t threads) {
    double seconds = pause_seconds();
    sigset_t all, before;
    pool->threads = threads;
    pool->wait_spins = (int64_t)(WAIT_SPIN / seconds);
    pool->block = aligned_block(POOL_BYTES, 1);
    pool->workers = calloc((size_t)threads, sizeof *pool->workers);
    if (!pool->block || !pool->workers) return refuse(TILEC_NO_MEMORY, "no memory for %lld threads", (long long)threads);
    *word(pool->block, POOL_THREADS) = threads;
    *word(pool->block, POOL_SPINS) = (int64_t)(IDLE_SPIN / seconds);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int started = 1;
    for (int64_t n = 1; n < threads && started; n++) started = start_worker(pool, n);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return started ? TILEC_OK : refuse(TILEC_NO_MEMORY, "the system starts no more threads");
}
