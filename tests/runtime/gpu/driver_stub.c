// The functions of the CUDA driver API that are used, on memory of the host: two kernels are known, a capture is a list.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct { uint64_t kernel, grid, block, shared; uint64_t pointer[4]; } Launch;
typedef struct { int count; Launch launches[16]; } Graph;
static const char *const kernels[] = {"scaled", "rows"};
static uint64_t most_shared[2], stream = 77, others, event;
static Graph graph;
static int capturing, recording, devices = 1, allocated, handles, launched, graphs;

int stub_devices(int count) { return devices = count; }
int stub_allocated(void) { return allocated; }
int stub_handles(void) { return handles; }
void *stub_others(void) { return &others; }
int stub_record(int on) { return recording = on; }
int stub_launched(void) { return launched; }
int stub_graphs(void) { return graphs; }
int cuInit(unsigned flags) { return flags; }
int cuDeviceGetCount(int *count) { *count = devices; return 0; }
int cuDeviceGet(int *device, int ordinal) { *device = ordinal; return 0; }
int cuDeviceGetName(char *name, int size, int device) { strncpy(name, "stub of a GPU", size); return device; }
int cuDeviceTotalMem_v2(size_t *bytes, int device) { *bytes = 79ull << 30; return device; }
int cuDeviceGetAttribute(int *value, int which, int device) {
  *value = which == 75 ? 9 : which == 76 ? 0 : which == 16 ? 132 : -1;
  return *value < 0;
}
int cuDevicePrimaryCtxRetain(void **context, int device) { *context = (void *)0x51; return device; }
int cuCtxSetCurrent(void *context) { return context == (void *)0x51 ? 0 : 201; }
int cuModuleLoadData(void **module, const char *image) { *module = (void *)0x52; return strcmp(image, "cubin") ? 209 : 0; }
int cuModuleGetFunction(void **function, void *module, const char *name) {
  for (uint64_t i = 0; i < 2; i++)
    if (module == (void *)0x52 && strcmp(name, kernels[i]) == 0) { *function = (void *)(i + 1); return 0; }
  return 500;
}
int cuFuncSetAttribute(void *function, int name, int value) { most_shared[(uint64_t)function - 1] = value; return name != 8; }
int cuMemAlloc_v2(uint64_t *address, size_t size) { *address = (uint64_t)malloc(size); allocated++; return 0; }
int cuMemFree_v2(uint64_t address) { free((void *)address); allocated--; return 0; }
int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t size, void *s) { memcpy((void *)to, from, size); return s != &stream; }
int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t size, void *s) { memcpy(to, (void *)from, size); return s != &stream; }
int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t size, void *s) { memcpy((void *)to, (void *)from, size); return s != &stream; }
int cuMemsetD8Async(uint64_t to, unsigned char byte, size_t size, void *s) { memset((void *)to, byte, size); return s != &stream; }

#ifdef ANY_SHARED
#define MOST_SHARED(kernel) shared
#else
#define MOST_SHARED(kernel) most_shared[kernel - 1]
#endif

static void run(const Launch *launch) {
  float *a = (float *)launch->pointer[0], *b = (float *)launch->pointer[1];
  if (launch->kernel == 1) {
    float *p = (float *)launch->pointer[2], *z = (float *)launch->pointer[3];
    for (int i = 0; i < 185; i++) p[i] = a[i] * b[i % 37], z[i] = p[i] + 1;
  } else {
    for (uint64_t r = 0; r < launch->grid; r++) {
      b[r] = 0;
      for (int i = 0; i < 37; i++) b[r] += a[r * 37 + i];
    }
  }
}

int cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,
                   void *s, void **arguments, void **extra) {
  uint64_t kernel = (uint64_t)function;
  if ((s != &stream && s != &others) || extra || gy != 1 || gz != 1 || by != 1 || bz != 1 || shared != MOST_SHARED(kernel)) return 1;
  Launch launch = {kernel, gx, bx, shared};
  for (int i = 0; i < (kernel == 1 ? 4 : 2); i++) launch.pointer[i] = *(uint64_t *)arguments[i];
  if (capturing) graph.launches[graph.count++] = launch;
  else run(&launch), launched += s == &others;
  return 0;
}
int cuStreamCreate(void **s, unsigned flags) { *s = &stream; return flags; }
int cuStreamSynchronize(void *s) { return capturing || s != &stream; }
int cuStreamIsCapturing(void *s, int *status) { *status = s == &others && recording; return 0; }
int cuStreamBeginCapture_v2(void *s, int mode) { capturing = 1; graph.count = 0; return mode != 2 || s != &stream; }
int cuStreamEndCapture(void *s, void **captured) { capturing = 0; *captured = &graph; return s != &stream; }
int cuGraphInstantiateWithFlags(void **ready, void *captured, uint64_t flags) {
  *ready = memcpy(malloc(sizeof(Graph)), captured, sizeof(Graph));
  handles++;
  return flags != 0;
}
int cuGraphLaunch(void *ready, void *s) {
  for (int i = 0; i < ((Graph *)ready)->count; i++) run(&((Graph *)ready)->launches[i]);
  graphs += s == &others;
  return s != &stream && s != &others;
}
int cuGraphDestroy(void *captured) { return captured != &graph; }
int cuGraphExecDestroy(void *ready) { free(ready); handles--; return 0; }
int cuEventCreate(void **e, unsigned flags) { *e = (void *)++event; handles++; return flags; }
int cuEventDestroy_v2(void *e) { handles--; return e == 0; }
int cuEventRecord(void *e, void *s) { return e == 0 || s != &stream; }
int cuEventElapsedTime(float *milliseconds, void *first, void *last) { *milliseconds = (uint64_t)last - (uint64_t)first; return 0; }
int cuGetErrorString(int status, const char **text) { *text = status == 209 ? "no kernel image for device" : "refused"; return 0; }
