/* Types that the headers of compiled models share. A program needs no Python and no compiler at run time. */
#ifndef TILEC_H
#define TILEC_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Version of these types and functions. `open` refuses a program that was compiled for another one. */
#define TILEC_C_ABI ${C_ABI}u

/* The most dimensions of a tensor. */
#define TILEC_MAX_RANK ${MAX_RANK}

/* What functions return. */
enum {
    TILEC_OK = 0,
    TILEC_BAD_ABI = 1,      /* the header is of another version than the library */
    TILEC_BAD_FILE = 2,     /* weights that are missing or of another size */
    TILEC_BAD_ARGUMENT = 3, /* a tensor that does not fit the model */
    TILEC_NO_MEMORY = 4     /* memory or threads that the system refuses */
};

/* Types of elements. Codes of fewer than 8 bits take a byte each, in its low bits. */
enum {
${TYPES}
};

/* An input or output of a model; `shape` is -1 where it varies from run to run. */
typedef struct tilec_port {
    const char *name;
    int32_t type;
    int32_t rank;
    int64_t shape[TILEC_MAX_RANK];
} tilec_port;

/* `bytes` bytes at `data`, in C order without gaps, aligned to an element. */
typedef struct tilec_tensor {
    void *data;
    size_t bytes;
    int32_t type;
    int32_t rank;
    int64_t shape[TILEC_MAX_RANK];
} tilec_tensor;

/* An opened model: mapped weights, threads, and working memory. */
typedef struct tilec_session tilec_session;

#ifdef __cplusplus
}
#endif
#endif
