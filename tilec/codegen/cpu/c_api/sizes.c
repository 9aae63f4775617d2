/* Sizes of a run: symbols read off the shapes of inputs, checked, and the numbers that follow from them. */

static int64_t extent_of(const struct port *port, int dim, const int64_t *numbers) {
    return port->number[dim] < 0 ? port->shown.shape[dim] : numbers[port->number[dim]];
}

static int32_t check_form(int at, const tilec_tensor *tensor) {
    const tilec_port *port = &inputs[at].shown;
    if (tensor->type != port->type)
        return refuse(TILEC_BAD_ARGUMENT, "input '%s' has type %d, the model has %d", port->name, tensor->type, port->type);
    if (tensor->rank != port->rank)
        return refuse(TILEC_BAD_ARGUMENT, "input '%s' has rank %d, the model has %d", port->name, tensor->rank, port->rank);
    return TILEC_OK;
}

static int32_t read_symbol(const struct symbol *symbol, const tilec_tensor *given, int64_t *value) {
    int64_t extent = given[symbol->at].shape[symbol->dim], rest = extent - symbol->constant;
    const char *name = inputs[symbol->at].shown.name;
    *value = rest / symbol->factor;
    if (rest < 0 || rest % symbol->factor || *value < symbol->low || (symbol->high >= 0 && *value > symbol->high) ||
        *value % symbol->divisor)
        return refuse(TILEC_BAD_ARGUMENT, "input '%s' has %lld along dimension %d, the model takes %s for %s", name,
                      (long long)extent, symbol->dim, symbol->allowed, symbol->name);
    return TILEC_OK;
}

static int32_t check_extents(int at, const tilec_tensor *tensor, const int64_t *numbers) {
    for (int dim = 0; dim < tensor->rank; dim++) {
        int64_t expected = extent_of(&inputs[at], dim, numbers);
        if (tensor->shape[dim] != expected)
            return refuse(TILEC_BAD_ARGUMENT, "input '%s' has %lld along dimension %d, the model has %lld there",
                          inputs[at].shown.name, (long long)tensor->shape[dim], dim, (long long)expected);
    }
    return TILEC_OK;
}

/* Computes the numbers of a run from the shapes of its inputs. */
static int32_t read_numbers(const tilec_tensor *given, int64_t *numbers) {
    int32_t status = TILEC_OK;
    for (int at = 0; at < INPUTS && !status; at++) status = check_form(at, &given[at]);
    for (int n = 0; n < SYMBOLS && !status; n++) status = read_symbol(&symbols[n], given, &numbers[n]);
    if (status) return status;
    COMPUTE_NUMBERS(numbers);
    for (int at = 0; at < INPUTS && !status; at++) status = check_extents(at, &given[at], numbers);
    for (int n = 0; n < CONSTRAINTS && !status; n++)
        if (!numbers[constraints[n].number])
            status = refuse(TILEC_BAD_ARGUMENT, "the model demands %s", constraints[n].text);
    return status;
}

/* Bytes of a tensor of a port. */
static size_t bytes_of(const struct port *port, const int64_t *numbers) {
    size_t bytes = (size_t)port->element_bytes;
    for (int dim = 0; dim < port->shown.rank; dim++) bytes *= (size_t)extent_of(port, dim, numbers);
    return bytes;
}

static void describe_output(int at, tilec_tensor *tensor, const int64_t *numbers) {
    tensor->type = outputs[at].shown.type;
    tensor->rank = outputs[at].shown.rank;
    for (int dim = 0; dim < tensor->rank; dim++) tensor->shape[dim] = extent_of(&outputs[at], dim, numbers);
}
