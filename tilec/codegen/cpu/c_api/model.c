/* The session of a compiled model. The tables before it are generated; the parts behind it each hold one idea. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define PUBLIC __attribute__((visibility("default")))

static __thread char error_text[512];

/* Notes why a call fails; returns its status. */
static int32_t refuse(int32_t status, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(error_text, sizeof error_text, format, arguments);
    va_end(arguments);
    return status;
}

/* Bytes at a multiple of ALIGNMENT, zeroed where asked; NULL without memory. */
static void *aligned_block(size_t bytes, int zeroed) {
    void *block = NULL;
    if (posix_memalign(&block, ALIGNMENT, bytes ? bytes : 1)) return NULL;
    if (zeroed) memset(block, 0, bytes);
    return block;
}

static int64_t *word(char *block, int64_t offset) { return (int64_t *)(block + offset); }
