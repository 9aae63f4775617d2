/* ${NAME}: ${SIGNATURE} */
#ifndef TILEC_MODEL_${IDENTIFIER}_H
#define TILEC_MODEL_${IDENTIFIER}_H

#include "tilec.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Numbers of inputs and outputs. */
enum { ${IDENTIFIER}_inputs = ${INPUTS}, ${IDENTIFIER}_outputs = ${OUTPUTS} };

/* The version that the library was built for: TILEC_C_ABI of its header. */
uint32_t ${IDENTIFIER}_abi(void);

/* Input or output of a number; NULL behind the last. */
const tilec_port *${IDENTIFIER}_input(int32_t number);
const tilec_port *${IDENTIFIER}_output(int32_t number);

/* Opens the model; `abi` is TILEC_C_ABI, `folder` holds the weights. `threads` take part in a run, the caller included;
   0: ${THREADS}. */
int32_t ${IDENTIFIER}_open(uint32_t abi, const char *folder, int32_t threads, tilec_session **session);

/* Writes type, rank, shape and needed bytes of every output at the shapes of the inputs, whose data is not read. */
int32_t ${IDENTIFIER}_shapes(const tilec_tensor *inputs, tilec_tensor *outputs);

/* Runs once. The data of outputs, which has room for at least the needed bytes and overlaps no other tensor, is written,
   and so are their types, ranks and shapes. A state that is updated in place has the data of its input, or is a copy of
   it first. Any number of threads may call this at the same time; the result does not
   depend on the number of threads. */
int32_t ${IDENTIFIER}_run(tilec_session *session, const tilec_tensor *inputs, tilec_tensor *outputs);

/* Ends the threads and frees everything. No run is under way. */
void ${IDENTIFIER}_close(tilec_session *session);

/* Why the last function that this thread called did not return TILEC_OK. */
const char *${IDENTIFIER}_error(void);

#ifdef __cplusplus
}
#endif
#endif
