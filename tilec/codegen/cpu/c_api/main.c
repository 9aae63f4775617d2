/* Runs ${NAME} once: reads inputs from files of raw elements, writes outputs to such files.

   cc -O2 main.c -L. -l${IDENTIFIER} -Wl,-rpath,'$$ORIGIN' -o main      (shared object)
   cc -O2 main.c lib${IDENTIFIER}.a -lm -lpthread -o main               (static library)
   ./main FOLDER${ARGUMENTS}

   FOLDER holds the weights. Behind each input's file come its extents that vary; an input `-` is zero. Outputs are
   written to output-0.bin and so on. */
#include <stdio.h>
#include <stdlib.h>

#include "${IDENTIFIER}.h"

static const size_t element_bytes[] = {${ELEMENT_BYTES}};

static int fail(const char *text) {
    fprintf(stderr, "%s\n", text);
    return 1;
}

/* Reads input `number` from the arguments; returns the next argument, NULL where one is missing or wrong. */
static char **read_input(int number, char **argument, tilec_tensor *tensor) {
    const tilec_port *port = ${IDENTIFIER}_input(number);
    const char *path = *argument;
    size_t bytes = element_bytes[port->type];
    if (!path) return NULL;
    argument++;
    tensor->type = port->type;
    tensor->rank = port->rank;
    for (int dim = 0; dim < port->rank; dim++) {
        if (port->shape[dim] < 0 && !*argument) return NULL;
        tensor->shape[dim] = port->shape[dim] < 0 ? strtoll(*argument++, NULL, 10) : port->shape[dim];
        bytes *= (size_t)tensor->shape[dim];
    }
    tensor->bytes = bytes;
    tensor->data = calloc(bytes ? bytes : 1, 1);
    if (!tensor->data) return NULL;
    if (path[0] == '-' && !path[1]) return argument;
    FILE *file = fopen(path, "rb");
    if (!file) return NULL;
    size_t count = fread(tensor->data, 1, bytes, file);
    fclose(file);
    return count == bytes ? argument : NULL;
}

static int write_output(int number, const tilec_tensor *tensor) {
    char path[64];
    snprintf(path, sizeof path, "output-%d.bin", number);
    FILE *file = fopen(path, "wb");
    if (!file) return fail("cannot write an output");
    size_t count = fwrite(tensor->data, 1, tensor->bytes, file);
    if (fclose(file) || count != tensor->bytes) return fail("cannot write an output");
    printf("%s: %s [", path, ${IDENTIFIER}_output(number)->name);
    for (int dim = 0; dim < tensor->rank; dim++) printf("%s%lld", dim ? ", " : "", (long long)tensor->shape[dim]);
    printf("]\n");
    return 0;
}

int main(int count, char **arguments) {
    static tilec_tensor inputs[${IDENTIFIER}_inputs + 1], outputs[${IDENTIFIER}_outputs + 1];
    tilec_session *session = NULL;
    char **argument = arguments + 2;
    int failed = 0;
    if (count < 2) return fail("usage: main FOLDER${ARGUMENTS}");
    for (int n = 0; n < ${IDENTIFIER}_inputs; n++)
        if (!(argument = read_input(n, argument, &inputs[n]))) return fail("an input is missing or has another size");
    if (${IDENTIFIER}_shapes(inputs, outputs)) return fail(${IDENTIFIER}_error());
    for (int n = 0; n < ${IDENTIFIER}_outputs; n++)
        if (!(outputs[n].data = malloc(outputs[n].bytes ? outputs[n].bytes : 1))) return fail("no memory");
    if (${IDENTIFIER}_open(TILEC_C_ABI, arguments[1], 0, &session)) return fail(${IDENTIFIER}_error());
    if (${IDENTIFIER}_run(session, inputs, outputs)) return fail(${IDENTIFIER}_error());
    for (int n = 0; n < ${IDENTIFIER}_outputs; n++) failed |= write_output(n, &outputs[n]);
    ${IDENTIFIER}_close(session);
    for (int n = 0; n < ${IDENTIFIER}_inputs; n++) free(inputs[n].data);
    for (int n = 0; n < ${IDENTIFIER}_outputs; n++) free(outputs[n].data);
    return failed;
}
