// Threads of a block as fibers: each has a stack and runs until it waits for others.
#pragma once
#include <algorithm>
#include <csetjmp>
#include <cstdlib>
#include <numeric>
#include <ucontext.h>
#include <utility>
#include <vector>

#include "engine.h"

namespace emu {

constexpr size_t STACK_BYTES = 256 << 10;

enum Order { ROUND_ROBIN, REVERSED, WARP_GREEDY, RANDOM };

struct Barrier {
  int arrived = 0;
  unsigned generation = 0;
};

struct Fiber {
  ucontext_t first;
  jmp_buf state;
  char* stack = nullptr;
  bool started = false, done = false;
  const Barrier* awaited = nullptr;
  unsigned generation = 0;
  int site = 0;  // where it waits
  bool ready() const { return !done && (awaited == nullptr || awaited->generation != generation); }
};

inline std::vector<Fiber> fibers;
inline jmp_buf scheduler;
inline int alive;
inline void (*body)(void**);
inline void** arguments;

inline void leave() {
  if (_setjmp(fibers[current].state) == 0) _longjmp(scheduler, 1);
}

inline void begin() {
  body(arguments);
  fibers[current].done = true;
  alive--;
  _longjmp(scheduler, 1);
}

inline void resume(int thread) {
  current = thread;
  Fiber& fiber = fibers[thread];
  if (_setjmp(scheduler) != 0) return;
  if (fiber.started) _longjmp(fiber.state, 1);
  fiber.started = true;
  setcontext(&fiber.first);
}

// Whether the caller is the last of `total` threads to arrive; the others come back when it has.
template <class Released>
void arrive(Barrier& barrier, int total, int site, Released released) {
  if (++barrier.arrived == total) {
    barrier.arrived = 0;
    released();
    barrier.generation++;
    return;
  }
  Fiber& fiber = fibers[current];
  fiber.awaited = &barrier;
  fiber.generation = barrier.generation;
  fiber.site = site;
  leave();
}

inline void prepare(int threads) {
  while ((int)fibers.size() < threads) fibers.emplace_back();
  for (int i = 0; i < threads; i++) {
    Fiber& fiber = fibers[i];
    if (fiber.stack == nullptr) fiber.stack = (char*)malloc(STACK_BYTES);
    getcontext(&fiber.first);
    fiber.first.uc_stack.ss_sp = fiber.stack;
    fiber.first.uc_stack.ss_size = STACK_BYTES;
    fiber.first.uc_link = nullptr;
    makecontext(&fiber.first, begin, 0);
    fiber.started = fiber.done = false;
    fiber.awaited = nullptr;
  }
  alive = threads;
}

// One turn of every thread that is ready, a warp after another in groups of `group` threads; false if none is.
inline bool turn(const std::vector<int>& order, int group) {
  bool moved = false;
  for (size_t start = 0; start < order.size(); start += group)
    for (bool again = true; again && start < order.size();) {
      again = false;
      for (size_t i = start; i < order.size() && i < start + group; i++)
        if (fibers[order[i]].ready()) {
          resume(order[i]);
          moved = true;
          again = group > 1;
        }
    }
  return moved;
}

// Run all threads to their end; false when some wait for others that never come.
inline bool run_block(int threads, Order order, unsigned seed) {
  std::vector<int> turns(threads);
  std::iota(turns.begin(), turns.end(), 0);
  if (order == REVERSED) std::reverse(turns.begin(), turns.end());
  auto random = [&seed] { return (seed = seed * 1664525u + 1013904223u) >> 8; };
  while (alive > 0) {
    if (order == RANDOM)
      for (int i = threads - 1; i > 0; i--) std::swap(turns[i], turns[random() % (i + 1)]);
    if (!turn(turns, order == WARP_GREEDY ? LANES : 1)) return false;
  }
  return true;
}

}  // namespace emu
