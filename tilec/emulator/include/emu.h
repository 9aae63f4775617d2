// The emulator's part of the tile primitives: what `tile.h` includes where TILE_EMULATOR is set.
#pragma once
#include "engine.h"

#define T_DEV static inline
#define T_KERNEL extern "C"
#define __global__
#define __restrict__
#define T_BOUNDS(threads, blocks)
#define SMEM(name) unsigned char* const name = (unsigned char*)emu::shared_memory
#define tid_ (emu::current)
#define bid_ ((int)emu::block_index.x)

// -- places that wait

#define EMU_HERE EMU_SITE(BARRIER, "")
#define t_barrier() emu::sync_block(EMU_HERE)
#define t_warp_barrier() emu::sync_warp(EMU_HERE)

// -- memory

namespace emu {
template <int N, class T>
vec<T, N> load_vector(const T* address, int site) {
  return load((const vec<T, N>*)address, site);
}
template <int N, class T>
void store_vector(T* address, const vec<T, N>& value, int site) {
  store((vec<T, N>*)address, value, site);
}
}  // namespace emu

#define EMU_LOAD(p, access) emu::load(p, EMU_SITE(access, #p))
#define EMU_STORE(p, x, access) emu::store(p, x, EMU_SITE(access, #p))
#define EMU_LOADS(n, p, access) emu::load_vector<n>(p, EMU_SITE(access, #p))
#define EMU_STORES(n, p, x, access) emu::store_vector<n>(p, x, EMU_SITE(access, #p))
#define LDG(p) EMU_LOAD(p, GLOBAL_READ)
#define LDG2(p) EMU_LOADS(2, p, GLOBAL_READ)
#define LDG4(p) EMU_LOADS(4, p, GLOBAL_READ)
#define LDG8(p) EMU_LOADS(8, p, GLOBAL_READ)
#define LDG16(p) EMU_LOADS(16, p, GLOBAL_READ)
#define STG(p, x) EMU_STORE(p, x, GLOBAL_WRITE)
#define STG2(p, x) EMU_STORES(2, p, x, GLOBAL_WRITE)
#define STG4(p, x) EMU_STORES(4, p, x, GLOBAL_WRITE)
#define STG8(p, x) EMU_STORES(8, p, x, GLOBAL_WRITE)
#define STG16(p, x) EMU_STORES(16, p, x, GLOBAL_WRITE)
#define LDS(p) EMU_LOAD(p, SHARED_READ)
#define LDS2(p) EMU_LOADS(2, p, SHARED_READ)
#define LDS4(p) EMU_LOADS(4, p, SHARED_READ)
#define LDS8(p) EMU_LOADS(8, p, SHARED_READ)
#define LDS16(p) EMU_LOADS(16, p, SHARED_READ)
#define STS(p, x) EMU_STORE(p, x, SHARED_WRITE)
#define STS2(p, x) EMU_STORES(2, p, x, SHARED_WRITE)
#define STS4(p, x) EMU_STORES(4, p, x, SHARED_WRITE)
#define STS8(p, x) EMU_STORES(8, p, x, SHARED_WRITE)
#define STS16(p, x) EMU_STORES(16, p, x, SHARED_WRITE)

// -- lanes of a warp, which all call them together

#define t_shfl_xor(x, mask) emu_shuffle(x, emu::lane() ^ (mask), EMU_HERE)
#define t_shfl(x, source) emu_shuffle(x, source, EMU_HERE)
template <class T> static T emu_shuffle(T value, int source, int site) {
  return emu::value_of<T>(emu::exchange(&value, sizeof(T), site), source);
}

// -- asynchronous copies

#define t_copy(bytes, to, from, present) \
  emu::start_copy(to, (present) ? (const void*)(from) : nullptr, bytes, EMU_SITE(GLOBAL_READ, #from), EMU_SITE(SHARED_WRITE, #to))
static inline void t_commit_copies() { emu::close_group(); }
template <int LEFT> static inline void t_wait_copies() { emu::wait_groups(LEFT); }

// -- matrices of halves: fragments of 16 x 16, 16 x 8 and 16 x 8 of a multiplication

struct alignas(16) emu_row { unsigned words[4]; };
#define ldmatrix4(r, p) emu_ldmatrix(r, p, false, EMU_SITE(SHARED_READ, #p), EMU_HERE)
#define ldmatrix4t(r, p) emu_ldmatrix(r, p, true, EMU_SITE(SHARED_READ, #p), EMU_HERE)
static inline void emu_ldmatrix(unsigned* r, const void* row, bool transposed, int site, int meeting) {
  emu_row held = emu::load((const emu_row*)row, site);
  auto rows = emu::exchange(&held, sizeof(held), meeting);
  for (int m = 0; m < 4; m++)
    for (int k = 0; k < 2; k++) {
      int i = emu::lane() / 4, j = emu::lane() % 4 * 2 + k;
      memcpy((char*)&r[m] + 2 * k, rows[m * 8 + (transposed ? j : i)] + 2 * (transposed ? i : j), 2);
    }
}

struct emu_words { unsigned a[4], b[2]; };
#define EMU_MMA(E, F, S, DEPTH, c, a, b) emu_products<E, F, S, DEPTH>(c, a, b, EMU_HERE)
#define t_mma_m16n8k16_f16(c, a, b) EMU_MMA(f16, f16, float, 16, c, a, b)
#define t_mma_m16n8k16_bf16(c, a, b) EMU_MMA(bf16, bf16, float, 16, c, a, b)
#define t_mma_m16n8k32_s8(c, a, b) EMU_MMA(signed char, signed char, int, 32, c, a, b)
#define t_mma_m16n8k32_u8_s8(c, a, b) EMU_MMA(unsigned char, signed char, int, 32, c, a, b)
static inline float emu_number(f16 x) { return t_f32(x); }
static inline float emu_number(bf16 x) { return t_f32(x); }
static inline int emu_number(signed char x) { return x; }
static inline int emu_number(unsigned char x) { return x; }
template <class E, class F, class S, int DEPTH>
static inline void emu_products(S* c, const unsigned* a, const unsigned* b, int site) {
  constexpr int EACH = 4 / sizeof(E);  // elements of a word
  emu_words mine;
  memcpy(mine.a, a, sizeof(mine.a));
  memcpy(mine.b, b, sizeof(mine.b));
  auto all = emu::exchange(&mine, sizeof(mine), site);
  for (int i = 0; i < 4; i++) {
    int row = emu::lane() / 4 + 8 * (i / 2), column = emu::lane() % 4 * 2 + i % 2;
    for (int k = 0; k < DEPTH; k++) {
      int half = k / (DEPTH / 2), lane = k % (DEPTH / 2) / EACH;
      E x;
      F y;
      memcpy(&x, all[row % 8 * 4 + lane] + 4 * (half * 2 + row / 8) + k % EACH * sizeof(E), sizeof(E));
      memcpy(&y, all[column * 4 + lane] + 16 + 4 * half + k % EACH * sizeof(F), sizeof(F));
      c[i] += emu_number(x) * emu_number(y);
    }
  }
}

#define EMU_MFMA(E, S, DEPTH, c, a, b) emu_wave_products<E, S, DEPTH>(c, a, b, EMU_HERE)
#define t_mfma_f32_32x32x2_f32(c, a, b) EMU_MFMA(float, float, 2, c, a, b)
#define t_mfma_f32_32x32x8_f16(c, a, b) EMU_MFMA(f16, float, 8, c, a, b)
#define t_mfma_i32_32x32x8_i8(c, a, b) EMU_MFMA(signed char, int, 8, c, a, b)
static inline float emu_number(float x) { return x; }
template <class E, class S, int DEPTH>
static inline void emu_wave_products(S* c, const unsigned* a, const unsigned* b, int site) {
  constexpr int EACH = DEPTH / 2;  // elements of a lane
  struct { E a[EACH], b[EACH]; } mine;
  memcpy(mine.a, a, sizeof(mine.a));
  memcpy(mine.b, b, sizeof(mine.b));
  auto all = emu::exchange(&mine, sizeof(mine), site);
  for (int i = 0; i < 16; i++) {
    int row = i / 4 * 8 + emu::lane() / 32 * 4 + i % 4, column = emu::lane() % 32;
    for (int k = 0; k < DEPTH; k++) {
      auto left = emu::value_of<decltype(mine)>(all, row + 32 * (k / EACH));
      auto right = emu::value_of<decltype(mine)>(all, column + 32 * (k / EACH));
      c[i] += emu_number(left.a[k % EACH]) * emu_number(right.b[k % EACH]);
    }
  }
}

// -- products of warpgroups: matrices as their descriptors say, read by the threads that have the sums

#define t_publish() emu::publish()
#define t_warpgroup_fence(sums) emu::fence_sums()
#define t_commit_products() emu::close_products()
#define t_wait_products(sums) emu::wait_products()
#define t_matrix(first, swizzle, panels) t_descriptor((unsigned)((char*)(first) - emu::shared_memory), swizzle, panels)

// The address of bytes of a matrix: number `at` of a row along which they lie, `row` across.
static inline const char* emu_matrix(unsigned long long matrix, int row, int at) {
  static const unsigned widths[] = {16, 128, 64, 32};
  unsigned width = widths[matrix >> 62], first = (matrix & 0x3fff) << 4, panels = (matrix >> 16 & 0x3fff) << 4,
           stride = (matrix >> 32 & 0x3fff) << 4;
  unsigned address = first + row / 8 * stride + row % 8 * width + at / width * panels + at % width;
  return emu::shared_memory + (address ^ (address >> 7) % (width / 16) << 4);
}

template <class E>
static inline auto emu_factor(unsigned long long matrix, bool across, int i, int k) {
  int row = across ? k : i, at = (across ? i : k) * (int)sizeof(E);
  E value;
  memcpy(&value, emu_matrix(matrix, row, at), sizeof(E));
  return emu_number(value);
}

// The pieces of a matrix of `count` rows (or columns) and 32 bytes of depth that a thread reads, one of `threads`.
template <class E, int DEPTH>
static inline void emu_read(unsigned long long matrix, bool across, int count, int thread, int threads, int site) {
  constexpr int EACH = 16 / sizeof(E);
  int pieces = across ? count / EACH : DEPTH / EACH;
  for (int piece = thread; piece < count * DEPTH / EACH; piece += threads)
    emu::read_factor(emu_matrix(matrix, piece / pieces, piece % pieces * 16), 16, site);
}

template <class S>
static void emu_add(void* sums, const void* added, int count) {
  for (int i = 0; i < count; i++) ((S*)sums)[i] += ((const S*)added)[i];
}

template <class E, class F, class S, int N, int DEPTH, bool A_ACROSS, bool B_ACROSS>
static void emu_warpgroup(S* c, unsigned long long a, unsigned long long b, int site, int meeting) {
  emu::meet_warpgroup(a, b, meeting);
  int thread = emu::current % 128, row = emu::warp() % 4 * 16 + emu::lane() / 4;
  emu_read<E, DEPTH>(a, A_ACROSS, 64, thread, 128, site);
  emu_read<F, DEPTH>(b, B_ACROSS, N, thread, 128, site);
  S added[N / 2] = {}, left[2][DEPTH];
  for (int k = 0; k < 2 * DEPTH; k++) left[k / DEPTH][k % DEPTH] = emu_factor<E>(a, A_ACROSS, row + k / DEPTH * 8, k % DEPTH);
  for (int i = 0; i < N / 4; i++) {
    int column = i / 2 * 8 + emu::lane() % 4 * 2 + i % 2;
    S* sums = added + i / 2 * 4 + i % 2;
    for (int k = 0; k < DEPTH; k++) {
      auto right = emu_factor<F>(b, B_ACROSS, column, k);
      sums[0] += left[0][k] * right;
      sums[2] += left[1][k] * right;
    }
  }
  emu::hold_sums(c, added, N / 2, emu_add<S>, sizeof added, site);
}
