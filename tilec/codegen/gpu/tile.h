// Tile primitives: the same kernels for nvcc, NVRTC, hipcc and, with TILE_EMULATOR, a C++ compiler. Kernels use nothing
// else. Halves are stored as f16 and bf16 and computed as float. An emulator defines what its part of this file leaves
// out in "emu.h": T_DEV, T_KERNEL, T_BOUNDS, SMEM, tid_ and bid_, t_barrier, t_shfl_xor, t_shfl, t_copy, loads, stores,
// combining stores.
#pragma once

#ifdef TILE_EMULATOR
#include <cmath>
#include <cstring>
#else
#define T_DEV static __device__ __forceinline__
#ifdef __HIP__
#include <hip/hip_runtime.h>
#endif
#endif

#ifdef TILE_EMULATOR
#define T_BITS static inline
#else
#define T_BITS T_DEV
#endif

// -- types

struct f16 { unsigned short bits; };
struct bf16 { unsigned short bits; };
template <class T, int N> struct alignas(sizeof(T) * N) vec { T v[N]; };
template <int N, class T> T_BITS vec<T, N> t_vector(T x) {
  vec<T, N> y;
  for (int i = 0; i < N; ++i) y.v[i] = x;
  return y;
}

#define T_INF t_bits<float>(0x7f800000u)
#define T_NAN t_bits<float>(0x7fc00000u)

template <class To, class From> T_BITS To t_bits(From x) {
  static_assert(sizeof(To) == sizeof(From), "other widths");
  To y;
  memcpy(&y, &x, sizeof y);
  return y;
}

template <class T> T_BITS T t_zero() { return T{}; }
T_BITS float t_f32(f16 x) {
#ifdef __CUDA_ARCH__
  float y;
  asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x.bits));
  return y;
#else
  return (float)t_bits<_Float16>(x.bits);
#endif
}
T_BITS f16 t_f16(float x) {
  f16 y;
#ifdef __CUDA_ARCH__
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y.bits) : "f"(x));
#else
  y.bits = t_bits<unsigned short>((_Float16)x);
#endif
  return y;
}
T_BITS float t_f32(bf16 x) { return t_bits<float>((unsigned)x.bits << 16); }
T_BITS bf16 t_bf16(float x) {
  unsigned u = t_bits<unsigned>(x);
  bf16 y;
  y.bits = x != x ? (unsigned short)(u >> 16 | 0x40) : (unsigned short)((u + 0x7fff + (u >> 16 & 1)) >> 16);
  return y;
}
T_BITS float t_round_f16(float x) { return t_f32(t_f16(x)); }
T_BITS float t_round_bf16(float x) { return t_f32(t_bf16(x)); }

// The place of an element of `size` bytes in panels of `bytes` a row, whose pieces of 16 bytes are permuted in every line
// of 128 bytes by its number; below 0 where whole periods beside it make up for it.
T_BITS int t_swizzled(unsigned at, unsigned bytes, unsigned size) {
  return at ^ at / (128 / size) % (bytes / 16) * (16 / size);
}

// -- memory: G is global, S shared, N neighbours at once

#ifdef TILE_EMULATOR
#include "emu.h"
#else
#define T_KERNEL extern "C" __global__
#ifdef __HIP__
#define T_BOUNDS(threads, blocks) __launch_bounds__(threads)
#else
#define T_BOUNDS(threads, blocks) __launch_bounds__(threads, blocks)
#endif
#define SMEM(name) extern __shared__ __align__(1024) unsigned char name[]
#define tid_ ((int)threadIdx.x)
#define bid_ ((int)blockIdx.x)
#define t_barrier() __syncthreads()
template <int N, class T> T_DEV vec<T, N> t_load(const T* p) { return *reinterpret_cast<const vec<T, N>*>(p); }
template <int N, class T> T_DEV void t_store(T* p, vec<T, N> v) { *reinterpret_cast<vec<T, N>*>(p) = v; }
#define LDG(p) (*(p))
#define LDG2(p) t_load<2>(p)
#define LDG4(p) t_load<4>(p)
#define LDG8(p) t_load<8>(p)
#define LDG16(p) t_load<16>(p)
#define STG(p, x) (*(p) = (x))
#define STG2(p, x) t_store<2>(p, x)
#define STG4(p, x) t_store<4>(p, x)
#define STG8(p, x) t_store<8>(p, x)
#define STG16(p, x) t_store<16>(p, x)
#define LDS(p) (*(p))
#define LDS2(p) t_load<2>(p)
#define LDS4(p) t_load<4>(p)
#define LDS8(p) t_load<8>(p)
#define LDS16(p) t_load<16>(p)
#define STS(p, x) (*(p) = (x))
#define STS2(p, x) t_store<2>(p, x)
#define STS4(p, x) t_store<4>(p, x)
#define STS8(p, x) t_store<8>(p, x)
#define STS16(p, x) t_store<16>(p, x)

// -- lanes of a warp, which all call them together

#ifdef __HIP__
template <class T> T_DEV T t_shfl_xor(T x, int d) { return (T)__shfl_xor(+x, d); }
template <class T> T_DEV T t_shfl(T x, int lane) { return (T)__shfl(+x, lane); }
#else
template <class T> T_DEV T t_shfl_xor(T x, int d) { return (T)__shfl_xor_sync(0xffffffffu, +x, d); }
template <class T> T_DEV T t_shfl(T x, int lane) { return (T)__shfl_sync(0xffffffffu, +x, lane); }
#endif
#endif

// -- asynchronous copies of 4, 8 or 16 bytes into shared memory, in groups; zeros where there is nothing to copy

#ifndef TILE_EMULATOR
#define t_copy(bytes, to, from, present) t_copy_bytes<bytes>(to, from, present)
#if !defined(__HIP__) && __CUDA_ARCH__ >= 800
T_DEV unsigned t_shared(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }
template <int BYTES> T_DEV void t_copy_bytes(void* to, const void* from, bool present) {
  if (BYTES == 16)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" :: "r"(t_shared(to)), "l"(from), "r"(present ? 16 : 0) : "memory");
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" :: "r"(t_shared(to)), "l"(from), "n"(BYTES), "r"(present ? BYTES : 0) : "memory");
}
T_DEV void t_commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int LEFT> T_DEV void t_wait_copies() { asm volatile("cp.async.wait_group %0;" :: "n"(LEFT) : "memory"); }
#else
template <int BYTES> T_DEV void t_copy_bytes(void* to, const void* from, bool present) {
  vec<unsigned, BYTES / 4> words = {};
  if (present) words = *(const vec<unsigned, BYTES / 4>*)from;
  *(vec<unsigned, BYTES / 4>*)to = words;
}
T_DEV void t_commit_copies() {}
template <int LEFT> T_DEV void t_wait_copies() {}
#endif
#endif

// -- matrices: words of fragments of a lane, and rows of 16 bytes of four matrices of eight rows

T_BITS unsigned t_word(f16 a, f16 b) { return a.bits | (unsigned)b.bits << 16; }
T_BITS unsigned t_word(bf16 a, bf16 b) { return a.bits | (unsigned)b.bits << 16; }
T_BITS unsigned t_word(float a) { return t_bits<unsigned>(a); }
template <class T> T_BITS unsigned t_word(T a, T b, T c, T d) {
  static_assert(sizeof(T) == 1, "elements of a byte");
  return (unsigned)(unsigned char)a | (unsigned)(unsigned char)b << 8 | (unsigned)(unsigned char)c << 16 |
         (unsigned)(unsigned char)d << 24;
}
#if !defined(TILE_EMULATOR) && !defined(__HIP__) && __CUDA_ARCH__ >= 800
T_DEV void ldmatrix4(unsigned* r, const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(t_shared(row)) : "memory");
}
T_DEV void ldmatrix4t(unsigned* r, const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(t_shared(row)) : "memory");
}
#define T_MMA(name, text, S, constraint) \
  T_DEV void t_mma_##name(S* c, const unsigned* a, const unsigned* b) { \
    asm volatile("mma.sync.aligned." text " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" \
                 : constraint(c[0]), constraint(c[1]), constraint(c[2]), constraint(c[3]) \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1])); \
  }
T_MMA(m16n8k16_f16, "m16n8k16.row.col.f32.f16.f16.f32", float, "+f")
T_MMA(m16n8k16_bf16, "m16n8k16.row.col.f32.bf16.bf16.f32", float, "+f")
T_MMA(m16n8k32_s8, "m16n8k32.row.col.s32.s8.s8.s32", int, "+r")
T_MMA(m16n8k32_u8_s8, "m16n8k32.row.col.s32.u8.s8.s32", int, "+r")
#endif

// -- products of matrices in shared memory by four warps (wgmma): stores are published ahead of the barrier behind which
// a product reads them; sums and factors are left alone until products are waited for

// A matrix in rows of `swizzle` bytes, from its first element on; `panels` bytes lie between those of neighbouring columns.
T_BITS unsigned long long t_descriptor(unsigned first, unsigned swizzle, unsigned panels) {
  unsigned long long layout = swizzle == 128 ? 1 : swizzle == 64 ? 2 : 3;
  return (first & 0x3ffff) >> 4 | (unsigned long long)(panels >> 4) << 16 | (unsigned long long)(swizzle / 2) << 32 | layout << 62;
}
#if !defined(TILE_EMULATOR) && !defined(__HIP__) && __CUDA_ARCH__ >= 900
T_DEV unsigned long long t_matrix(const void* first, unsigned swizzle, unsigned panels) {
  return t_descriptor(t_shared(first), swizzle, panels);
}
T_DEV void t_publish() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
T_DEV void t_hold(float& x) { asm volatile("" : "+f"(x) :: "memory"); }
T_DEV void t_hold(int& x) { asm volatile("" : "+r"(x) :: "memory"); }
template <class S, int N> T_DEV void t_warpgroup_fence(S (&sums)[N]) {
#pragma unroll
  for (int i = 0; i < N; ++i) t_hold(sums[i]);
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
T_DEV void t_commit_products() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <class S, int N> T_DEV void t_wait_products(S (&sums)[N]) {
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
#pragma unroll
  for (int i = 0; i < N; ++i) t_hold(sums[i]);
}
#endif
#if !defined(TILE_EMULATOR) && defined(__HIP__)
typedef _Float16 t_half4 __attribute__((ext_vector_type(4)));
typedef float t_float16 __attribute__((ext_vector_type(16)));
typedef int t_int16 __attribute__((ext_vector_type(16)));
#define T_MFMA(name, S, V, product) \
  T_DEV void t_mfma_##name(S* c, const unsigned* a, const unsigned* b) { \
    V sums; \
    _Pragma("unroll") for (int i = 0; i < 16; ++i) sums[i] = c[i]; \
    sums = product; \
    _Pragma("unroll") for (int i = 0; i < 16; ++i) c[i] = sums[i]; \
  }
T_DEV t_half4 t_halves(const unsigned* x) { t_half4 y; memcpy(&y, x, sizeof y); return y; }
T_MFMA(f32_32x32x2_f32, float, t_float16,
       __builtin_amdgcn_mfma_f32_32x32x2f32(t_bits<float>(*a), t_bits<float>(*b), sums, 0, 0, 0))
T_MFMA(f32_32x32x8_f16, float, t_float16,
       __builtin_amdgcn_mfma_f32_32x32x8f16(t_halves(a), t_halves(b), sums, 0, 0, 0))
T_MFMA(i32_32x32x8_i8, int, t_int16, __builtin_amdgcn_mfma_i32_32x32x8i8((int)*a, (int)*b, sums, 0, 0, 0))
#endif

// -- scalar functions: NaN comes through maximum and minimum, integers wrap, // and % floor, division by 0 gives 0

#define T_FLOATS(name, f, d) \
  T_BITS float t_##name(float x) { return f(x); } \
  T_BITS double t_##name(double x) { return d(x); }
T_FLOATS(exp, expf, exp)
T_FLOATS(log, logf, log)
T_FLOATS(sqrt, sqrtf, sqrt)
T_FLOATS(tanh, tanhf, tanh)
T_FLOATS(erf, erff, erf)
T_FLOATS(floor, floorf, floor)
T_FLOATS(ceil, ceilf, ceil)
T_FLOATS(round, rintf, rint)
T_FLOATS(trunc, truncf, trunc)
T_FLOATS(sin, sinf, sin)
T_FLOATS(cos, cosf, cos)
T_FLOATS(tan, tanf, tan)
T_FLOATS(asin, asinf, asin)
T_FLOATS(acos, acosf, acos)
T_FLOATS(atan, atanf, atan)
T_FLOATS(sinh, sinhf, sinh)
T_FLOATS(cosh, coshf, cosh)
T_FLOATS(asinh, asinhf, asinh)
T_FLOATS(acosh, acoshf, acosh)
T_FLOATS(atanh, atanhf, atanh)
T_FLOATS(abs, fabsf, fabs)
T_BITS float t_pow(float a, float b) { return powf(a, b); }
T_BITS double t_pow(double a, double b) { return pow(a, b); }
T_BITS float t_fmod(float a, float b) { return fmodf(a, b); }
T_BITS double t_fmod(double a, double b) { return fmod(a, b); }
T_BITS float t_truncdiv(float a, float b) { return truncf(a / b); }
T_BITS double t_truncdiv(double a, double b) { return trunc(a / b); }
template <class T> T_BITS T t_sigmoid(T x) {
  T small = t_exp(-t_abs(x));
  return x < 0 ? small / (1 + small) : 1 / (1 + small);
}
// The same for results of half precision: 2^-17 off at most (erf: of 1), subnormals are 0.
#if defined(__CUDA_ARCH__)
T_BITS float t_exp2(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
T_BITS float t_fast_div(float a, float b) {
  float y;
  asm("div.approx.ftz.f32 %0, %1, %2;" : "=f"(y) : "f"(a), "f"(b));
  return y;
}
#else
T_BITS float t_exp2(float x) { return exp2f(x); }
T_BITS float t_fast_div(float a, float b) { return a / b; }
#endif
T_BITS float t_fast_exp(float x) { return t_exp2(x * 1.4426950408889634f); }
T_BITS float t_fast_sigmoid(float x) { return t_fast_div(1.f, 1.f + t_fast_exp(-x)); }
T_BITS float t_fast_erf(float x) {  // Abramowitz and Stegun, Handbook of Mathematical Functions, 7.1.26
  float a = fabsf(x), t = t_fast_div(1.f, 1.f + .3275911f * a);
  float p = t * (.254829592f + t * (-.284496736f + t * (1.421413741f + t * (-1.453152027f + t * 1.061405429f))));
  return copysignf(1.f - p * t_exp2(a * a * -1.4426950408889634f), x);
}
template <class T> T_BITS bool t_isnan(T x) { return x != x; }
template <class T> T_BITS bool t_isinf(T x) { return t_abs(x) == (T)T_INF; }

template <class T> T_BITS T t_max(T a, T b) { return a > b || a != a ? a : b; }
template <class T> T_BITS T t_min(T a, T b) { return a < b || a != a ? a : b; }
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
T_BITS float t_max(float a, float b) {
  float y;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(y) : "f"(a), "f"(b));
  return y;
}
T_BITS float t_min(float a, float b) {
  float y;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(y) : "f"(a), "f"(b));
  return y;
}
#endif

template <class T> T_BITS T t_add(T a, T b) { return (T)((unsigned long long)a + (unsigned long long)b); }
template <class T> T_BITS T t_sub(T a, T b) { return (T)((unsigned long long)a - (unsigned long long)b); }
template <class T> T_BITS T t_mul(T a, T b) { return (T)((unsigned long long)a * (unsigned long long)b); }
template <class T> T_BITS T t_neg(T a) { return t_sub((T)0, a); }
template <class T> T_BITS T t_iabs(T a) { return a < 0 ? t_neg(a) : a; }
template <class T> T_BITS T t_sign(T a) { return a > 0 ? (T)1 : a < 0 ? (T)-1 : a; }
template <class T> T_BITS T t_itruncdiv(T a, T b) { return b == 0 ? (T)0 : b == (T)-1 && (T)-1 < 0 ? t_neg(a) : (T)(a / b); }
template <class T> T_BITS T t_ifmod(T a, T b) { return b == 0 || (b == (T)-1 && (T)-1 < 0) ? (T)0 : (T)(a % b); }
template <class T> T_BITS T t_floordiv(T a, T b) {
  T r = t_ifmod(a, b);
  return t_sub(t_itruncdiv(a, b), (T)(r != 0 && ((r < 0) != (b < 0))));
}
template <class T> T_BITS T t_floormod(T a, T b) {
  T r = t_ifmod(a, b);
  return r != 0 && ((r < 0) != (b < 0)) ? (T)(r + b) : r;
}
template <class T> T_BITS T t_ipow(T a, T b) {
  if (b < 0) return a == 1 ? (T)1 : a == (T)-1 ? (b & 1 ? (T)-1 : (T)1) : (T)0;
  T y = 1;
  for (; b; b = (T)(b >> 1), a = t_mul(a, a))
    if (b & 1) y = t_mul(y, a);
  return y;
}
template <class T> T_BITS T t_shl(T a, T b) {
  return (unsigned long long)b >= 8 * sizeof(T) ? (T)0 : (T)((unsigned long long)a << (unsigned)b);
}
template <class T> T_BITS T t_shr(T a, T b) {
  return (unsigned long long)b >= 8 * sizeof(T) ? (T)(a < 0 ? -1 : 0) : (T)(a >> (unsigned)b);
}

// A float as an integer of [low, high]: truncated, saturated, NaN is 0.
template <class T, class F> T_BITS T t_saturated(F x, T low, T high) {
  if (x != x) return 0;
  if (x <= (F)low) return low;
  if (x >= (F)high) return high;
  return (T)x;
}
