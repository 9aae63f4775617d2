/* Checks of the memory that a caller passes: room, alignment, overlaps, indices that a node looks up. */

static int overlaps(const void *one, size_t bytes, const void *other, size_t more) {
    uintptr_t a = (uintptr_t)one, b = (uintptr_t)other;
    return bytes && more && a < b + more && b < a + bytes;
}

static int32_t check_memory(const struct port *port, const char *role, const tilec_tensor *tensor, size_t bytes) {
    if (tensor->bytes < bytes)
        return refuse(TILEC_BAD_ARGUMENT, "%s '%s' has %zu bytes, %zu are needed", role, port->shown.name, tensor->bytes,
                      bytes);
    if (bytes && (!tensor->data || (uintptr_t)tensor->data % (uintptr_t)port->element_bytes))
        return refuse(TILEC_BAD_ARGUMENT, "%s '%s' is not aligned to an element", role, port->shown.name);
    return TILEC_OK;
}

/* Whether an input and an output are one memory that a run updates in place. */
static int is_state(int input, int output) {
    for (int n = 0; n < STATES; n++)
        if (states[n].input == input && states[n].output == output) return 1;
    return 0;
}

static int32_t check_overlaps(const tilec_tensor *given, const tilec_tensor *made, const int64_t *numbers) {
    for (int at = 0; at < OUTPUTS; at++) {
        size_t bytes = bytes_of(&outputs[at], numbers);
        for (int other = 0; other < INPUTS; other++)
            if (overlaps(made[at].data, bytes, given[other].data, bytes_of(&inputs[other], numbers)) &&
                !(made[at].data == given[other].data && is_state(other, at)))
                return refuse(TILEC_BAD_ARGUMENT, "output '%s' overlaps input '%s'", outputs[at].shown.name,
                              inputs[other].shown.name);
        for (int other = 0; other < at; other++)
            if (overlaps(made[at].data, bytes, made[other].data, bytes_of(&outputs[other], numbers)))
                return refuse(TILEC_BAD_ARGUMENT, "output '%s' overlaps output '%s'", outputs[at].shown.name,
                              outputs[other].shown.name);
    }
    return TILEC_OK;
}

/* Element `place` of an integer tensor; 64-bit unsigned ones beyond int64 count as the largest. */
static int64_t index_at(const void *data, int32_t type, size_t place) {
    switch (type) {
    case TILEC_I64: return ((const int64_t *)data)[place];
    case TILEC_I32: return ((const int32_t *)data)[place];
    case TILEC_I16: return ((const int16_t *)data)[place];
    case TILEC_I8: return ((const int8_t *)data)[place];
    case TILEC_U32: return ((const uint32_t *)data)[place];
    case TILEC_U16: return ((const uint16_t *)data)[place];
    case TILEC_U8: return ((const uint8_t *)data)[place];
    default: return ((const uint64_t *)data)[place] > INT64_MAX ? INT64_MAX : ((const int64_t *)data)[place];
    }
}

static int32_t check_indices(const struct range *range, const tilec_tensor *given, const int64_t *numbers) {
    const struct port *port = &inputs[range->input];
    int64_t extent = range->number < 0 ? range->extent : numbers[range->number], least = range->wraps ? -extent : 0;
    size_t count = bytes_of(port, numbers) / (size_t)port->element_bytes, behind = 1, places = 1;
    for (int dim = range->dim + 1; range->dim >= 0 && dim < port->shown.rank; dim++)
        behind *= (size_t)extent_of(port, dim, numbers);
    if (range->dim >= 0) places = (size_t)extent_of(port, range->dim, numbers);
    for (size_t place = 0; place < count; place++) {
        if (range->dim >= 0 && place / behind % places != (size_t)range->at) continue;
        int64_t index = index_at(given[range->input].data, port->shown.type, place);
        if ((index < least || index >= extent) && !(range->besides && index == range->value))
            return refuse(TILEC_BAD_ARGUMENT, "input '%s' has the index %lld, outside of %lld to %lld: %s looks it up",
                          port->shown.name, (long long)index, (long long)least, (long long)extent - 1, range->node);
    }
    return TILEC_OK;
}

/* Checks everything that a run reads and writes. */
static int32_t check_feeds(const tilec_tensor *given, const tilec_tensor *made, const int64_t *numbers) {
    int32_t status = TILEC_OK;
    for (int at = 0; at < INPUTS && !status; at++)
        status = check_memory(&inputs[at], "input", &given[at], bytes_of(&inputs[at], numbers));
    for (int at = 0; at < OUTPUTS && !status; at++)
        status = check_memory(&outputs[at], "output", &made[at], bytes_of(&outputs[at], numbers));
    if (!status) status = check_overlaps(given, made, numbers);
    for (int n = 0; n < RANGES && !status; n++) status = check_indices(&ranges[n], given, numbers);
    return status;
}
