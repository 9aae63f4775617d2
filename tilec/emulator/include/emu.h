// CUDA's words and the tile primitives on the CPU: included instead of the device's headers where TILE_EMULATOR is set.
#pragma once
#include <cmath>
#include <cstdint>

#include "engine.h"

typedef _Float16 half;
typedef unsigned char uchar;
struct alignas(4) half2 { half x, y; };
struct alignas(8) float2 { float x, y; };
struct alignas(16) float4 { float x, y, z, w; };
struct alignas(8) uint2 { unsigned x, y; };
struct alignas(16) uint4 { unsigned x, y, z, w; };
static inline float2 make_float2(float x, float y) { return {x, y}; }
static inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
static inline half2 __halves2half2(half x, half y) { return {x, y}; }
static inline float __half2float(half x) { return (float)x; }
static inline half __float2half(float x) { return (half)x; }
#define __expf expf
template <class T> static inline T max(T a, T b) { return a > b ? a : b; }
template <class T> static inline T min(T a, T b) { return a < b ? a : b; }

#define CUDART_INF_F INFINITY
#define __global__
#define __device__ static inline
#define __forceinline__
#define __launch_bounds__(...)
#define T_DEV static inline
#define SMEM(bytes) unsigned char* const smem_ = (unsigned char*)emu::shared_memory
struct emu_thread {
  emu_dim3 at() const { return {(unsigned)emu::current, 0, 0}; }
};
#define threadIdx (emu_thread().at())
#define blockIdx emu::block_index
#define blockDim emu::block_size
#define gridDim emu::grid_size
#define EMU_HERE EMU_SITE(BARRIER, "")
#define __syncthreads() emu::sync_block(EMU_HERE)
#define __syncwarp(...) emu::sync_warp(EMU_HERE)

#define EMU_LOAD(T, p, access) emu::load((const T*)(p), EMU_SITE(access, #p))
#define EMU_STORE(T, p, value, access) emu::store((T*)(p), value, EMU_SITE(access, #p))
#define EMU_ELEMENT(p) std::remove_cv_t<std::remove_reference_t<decltype(*(p))>>
#define LDG(p) EMU_LOAD(EMU_ELEMENT(p), p, GLOBAL_READ)
#define LDG2(p) EMU_LOAD(float2, p, GLOBAL_READ)
#define LDG4(p) EMU_LOAD(float4, p, GLOBAL_READ)
#define STG(p, value) EMU_STORE(EMU_ELEMENT(p), p, value, GLOBAL_WRITE)
#define STG2(p, value) EMU_STORE(float2, p, value, GLOBAL_WRITE)
#define STG4(p, value) EMU_STORE(float4, p, value, GLOBAL_WRITE)
#define STGH2(p, a, b) EMU_STORE(half2, p, (half2{(half)(a), (half)(b)}), GLOBAL_WRITE)
#define LDS(p) EMU_LOAD(EMU_ELEMENT(p), p, SHARED_READ)
#define LDS2(p) EMU_LOAD(float2, p, SHARED_READ)
#define LDS4(p) EMU_LOAD(float4, p, SHARED_READ)
#define STS(p, value) EMU_STORE(EMU_ELEMENT(p), p, value, SHARED_WRITE)
#define STS2(p, value) EMU_STORE(float2, p, value, SHARED_WRITE)
#define STS4(p, value) EMU_STORE(float4, p, value, SHARED_WRITE)
#define STSH2(p, a, b) EMU_STORE(half2, p, (half2{(half)(a), (half)(b)}), SHARED_WRITE)
#define COPY16(to, from) EMU_STORE(uint4, to, EMU_LOAD(uint4, from, GLOBAL_READ), SHARED_WRITE)

static inline float t_max(float a, float b) { return a > b || a != a ? a : b; }
static inline float t_min(float a, float b) { return a < b || a != a ? a : b; }
static inline float t_exp(float x) { return expf(x); }
static inline float t_sigmoid(float x) { return 1.f / (1.f + expf(-x)); }
static inline unsigned pack_half2(half a, half b) {
  half2 pair{a, b};
  unsigned bits;
  memcpy(&bits, &pair, 4);
  return bits;
}

#define t_shfl_xor(value, mask) emu_shuffle(value, emu::lane() ^ (mask), EMU_HERE)
#define __shfl_xor_sync(lanes, value, mask, ...) emu_shuffle(value, emu::lane() ^ (mask), EMU_HERE)
#define __shfl_sync(lanes, value, source, ...) emu_shuffle(value, source, EMU_HERE)
template <class T> static T emu_shuffle(T value, int source, int site) {
  return emu::value_of<T>(emu::exchange(&value, sizeof(T), site), source);
}

#define cp_async16(to, from) emu::start_copy(to, from, EMU_SITE(GLOBAL_READ, #from), EMU_SITE(SHARED_WRITE, #to))
static inline void cp_async_commit() { emu::close_group(); }
template <int LEFT> static inline void cp_async_wait() { emu::wait_groups(LEFT); }

#define ldmatrix4(r, p) emu_ldmatrix(r, p, false, EMU_SITE(SHARED_READ, #p), EMU_HERE)
#define ldmatrix4t(r, p) emu_ldmatrix(r, p, true, EMU_SITE(SHARED_READ, #p), EMU_HERE)
static void emu_ldmatrix(unsigned* r, const void* row, bool transposed, int site, int meeting) {
  uint4 held = emu::load((const uint4*)row, site);
  auto rows = emu::exchange(&held, sizeof(held), meeting);
  for (int m = 0; m < 4; m++) {
    half pair[2];
    for (int k = 0; k < 2; k++) {
      int i = emu::lane() / 4, j = emu::lane() % 4 * 2 + k;
      memcpy(&pair[k], rows[m * 8 + (transposed ? j : i)] + 2 * (transposed ? i : j), 2);
    }
    memcpy(&r[m], pair, 4);
  }
}

struct emu_fragments { half a[8], b[4]; };
#define mma_m16n8k16(c0, c1, c2, c3, a, b) emu_mma(c0, c1, c2, c3, a, b, EMU_HERE)
static void emu_mma(float& c0, float& c1, float& c2, float& c3, const unsigned* a, const unsigned* b, int site) {
  emu_fragments mine;
  memcpy(mine.a, a, 16);
  memcpy(mine.b, b, 8);
  auto all = emu::exchange(&mine, sizeof(mine), site);
  float* sums[4] = {&c0, &c1, &c2, &c3};
  for (int i = 0; i < 4; i++) {
    int row = emu::lane() / 4 + 8 * (i / 2), column = emu::lane() % 4 * 2 + i % 2;
    for (int k = 0; k < 16; k++) {
      half x = emu::value_of<emu_fragments>(all, row % 8 * 4 + k % 8 / 2).a[k / 8 * 4 + row / 8 * 2 + k % 2];
      half y = emu::value_of<emu_fragments>(all, column * 4 + k % 8 / 2).b[k / 8 * 2 + k % 2];
      *sums[i] += (float)x * (float)y;
    }
  }
}
