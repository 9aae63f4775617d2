/* The functions of the header. */

struct tilec_session {
    struct mapping files[FILES + 1];
    struct pool pool;
    pthread_mutex_t lock;
    struct run *waiting; /* working memory that no run uses */
};

/* Working memory that neither a run nor a thread that is still leaving one uses. */
static struct run *take_run(tilec_session *session) {
    pthread_mutex_lock(&session->lock);
    struct run **place = &session->waiting;
    while (*place && __atomic_load_n(word((*place)->job, JOB_STATE), __ATOMIC_ACQUIRE)) place = &(*place)->next;
    struct run *run = *place;
    if (run) *place = run->next;
    pthread_mutex_unlock(&session->lock);
    return run ? run : new_run(&session->pool, session->files);
}

static void give_run(tilec_session *session, struct run *run) {
    pthread_mutex_lock(&session->lock);
    run->next = session->waiting;
    session->waiting = run;
    pthread_mutex_unlock(&session->lock);
}

static int32_t run_once(tilec_session *session, struct run *run, const tilec_tensor *given, tilec_tensor *made) {
    int32_t status = read_numbers(given, run->numbers);
    if (!status) status = check_feeds(given, made, run->numbers);
    if (!status) status = resize_run(run, session->pool.threads);
    if (status) return status;
    for (int at = 0; at < INPUTS; at++) run->table[at] = (int64_t)(intptr_t)given[at].data;
    for (int at = 0; at < OUTPUTS; at++) run->table[INPUTS + at] = (int64_t)(intptr_t)made[at].data;
    for (int n = 0; n < STATES; n++)
        if (made[states[n].output].data != given[states[n].input].data)
            memcpy(made[states[n].output].data, given[states[n].input].data,
                   bytes_of(&inputs[states[n].input], run->numbers));
    if (LAUNCHES) ((entry_1)entry(0))((int64_t)(intptr_t)run->job);
    for (int at = 0; at < OUTPUTS; at++) describe_output(at, &made[at], run->numbers);
    return TILEC_OK;
}

static int64_t usable_cpus(void) {
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) ? 1 : CPU_COUNT(&set);
}

static int64_t default_threads(void) {
    int64_t usable = usable_cpus();
    return DEFAULT_THREADS && DEFAULT_THREADS < usable ? DEFAULT_THREADS : usable;
}

PUBLIC const char *NAME(error)(void) { return error_text; }

PUBLIC uint32_t NAME(abi)(void) { return TILEC_C_ABI; }

PUBLIC const tilec_port *NAME(input)(int32_t number) {
    return number >= 0 && number < INPUTS ? &inputs[number].shown : NULL;
}

PUBLIC const tilec_port *NAME(output)(int32_t number) {
    return number >= 0 && number < OUTPUTS ? &outputs[number].shown : NULL;
}

PUBLIC void NAME(close)(tilec_session *session) {
    if (!session) return;
    stop_pool(&session->pool);
    while (session->waiting) {
        struct run *run = session->waiting;
        session->waiting = run->next;
        free_run(run);
    }
    for (int n = 0; n < FILES; n++) unmap(&session->files[n]);
    pthread_mutex_destroy(&session->lock);
    free(session);
}

PUBLIC int32_t NAME(open)(uint32_t abi, const char *folder, int32_t threads, tilec_session **opened) {
    int32_t status = TILEC_OK;
    if (abi != TILEC_C_ABI)
        return refuse(TILEC_BAD_ABI, "the program was compiled for version %u, the library is of version %u", abi,
                      TILEC_C_ABI);
    if (threads < 0) return refuse(TILEC_BAD_ARGUMENT, "%d threads cannot run anything", threads);
    tilec_session *session = calloc(1, sizeof *session);
    if (!session) return refuse(TILEC_NO_MEMORY, "no memory for a session");
    pthread_mutex_init(&session->lock, NULL);
    for (int n = 0; n < FILES && !status; n++) status = map_file(folder, &files[n], &session->files[n]);
    if (!status) status = start_pool(&session->pool, threads ? threads : default_threads());
    if (status)
        NAME(close)(session);
    else
        *opened = session;
    return status;
}

PUBLIC int32_t NAME(shapes)(const tilec_tensor *given, tilec_tensor *made) {
    int64_t numbers[NUMBERS + 1] = {0};
    int32_t status = read_numbers(given, numbers);
    for (int at = 0; at < OUTPUTS && !status; at++) {
        describe_output(at, &made[at], numbers);
        made[at].bytes = bytes_of(&outputs[at], numbers);
    }
    return status;
}

PUBLIC int32_t NAME(run)(tilec_session *session, const tilec_tensor *given, tilec_tensor *made) {
    struct run *run = take_run(session);
    if (!run) return refuse(TILEC_NO_MEMORY, "no memory for a run");
    int32_t status = run_once(session, run, given, made);
    give_run(session, run);
    return status;
}
