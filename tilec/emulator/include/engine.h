// What kernels ask of the emulator; engine.cc has the rest, which is compiled once.
#pragma once
#include <cstddef>
#include <cstring>
#include <type_traits>
#include <utility>

struct emu_dim3 {
  unsigned x = 1, y = 1, z = 1;
};

namespace emu {

constexpr int LANES = EMU_LANES;  // of a warp

enum Access { GLOBAL_READ, GLOBAL_WRITE, SHARED_READ, SHARED_WRITE, BARRIER };

extern int current;  // thread of the block
extern char* shared_memory;
extern emu_dim3 block_index, block_size, grid_size;

inline int lane() { return current % LANES; }
inline int warp() { return current / LANES; }

// The number of a new place in the source; `text` is that of the address.
int site_number(int line, Access access, const char* text);

// Check and count an access, of a store with the bytes that it brings; false if it leaves the memory that it may touch.
bool note(int site, const void* address, size_t bytes, const void* stored = nullptr);

// The condition of a loop, looked at before each of its rounds.
bool goes_on(int line, bool condition);

void sync_block(int site);
void sync_warp(int site);

// What the lanes of the caller's warp gave, at most 64 bytes each, after all of them have.
const char (*exchange(const void* value, size_t bytes, int site))[64];

// Asynchronous copies of 16 bytes land when their group is waited for, not before.
void start_copy(void* to, const void* from, int bytes, int from_site, int to_site);
void close_group();
void wait_groups(int left);

// Products of warpgroups: each thread takes its part of the sums, which it gets when it waits, and of the reading of factors.
void publish();
void fence_sums();
void meet_warpgroup(unsigned long long left, unsigned long long right, int site);
void read_factor(const void* address, int bytes, int site);
void hold_sums(void* sums, const void* added, int count, void (*add)(void*, const void*, int), int bytes, int site);
void close_products();
void wait_products();

struct Launch;
const char* run(void (*kernel)(void**), const Launch& launch);

template <class T>
T load(const T* address, int site) {
  T value;
  if (note(site, address, sizeof(T))) return *address;
  memset((void*)&value, 0xff, sizeof(T));
  return value;
}

template <class T>
void store(T* address, std::common_type_t<T> value, int site) {
  if (note(site, address, sizeof(T), &value)) *address = value;
}

template <class T>
T value_of(const char (*given)[64], int lane) {
  T value;
  memcpy(&value, given[lane % LANES], sizeof(T));
  return value;
}

// Calls a kernel with arguments of its own types from pointers to them, as cuLaunchKernel does.
template <class... A, size_t... I>
void call(void (*kernel)(A...), void** arguments, std::index_sequence<I...>) {
  kernel(*(std::remove_reference_t<A>*)arguments[I]...);
}

template <class... A>
void call(void (*kernel)(A...), void** arguments) {
  call(kernel, arguments, std::index_sequence_for<A...>());
}

}  // namespace emu

// The number of this place, the same in every call.
#define EMU_SITE(access, text) \
  ([] { static const int number = emu::site_number(__LINE__, emu::access, text); return number; }())

// Makes a kernel callable from outside.
#define EMU_ENTRY(kernel)                                                                                      \
  extern "C" __attribute__((visibility("default"))) const char* emu_run_##kernel(const emu::Launch* launch) { \
    return emu::run([](void** arguments) { emu::call(kernel, arguments); }, *launch);                         \
  }
