// One block: its shared memory, the parameters' memory, synchronisation, and checked loads and stores.
#pragma once
#include <cstring>
#include <deque>

#include "counters.h"
#include "fibers.h"
#include "shadow.h"

namespace emu {

// Memory of a parameter, as the caller passes it; elements of `granule` bytes.
struct Region {
  char* base;
  size_t bytes, granule;
  int writable;
};

inline size_t shared_bytes;
inline bool counting;
inline std::vector<Region> regions;
inline std::vector<ShadowMemory> shadows;  // of shared memory, then of every region that the kernel may write

inline ShadowMemory* shadow_of(const void* address, size_t bytes) {
  for (ShadowMemory& shadow : shadows)
    if (shadow.holds(address, bytes)) return &shadow;
  return nullptr;
}

inline bool allowed(Access access, const char* address, size_t bytes) {
  if (is_shared(access)) return address >= shared_memory && address + bytes <= shared_memory + shared_bytes;
  for (const Region& region : regions)
    if (address >= region.base && address + bytes <= region.base + region.bytes) return region.writable || !is_write(access);
  return false;
}

bool note(int site, const void* address, size_t bytes, const void* stored) {
  Access access = sites[site].access;
  if (!allowed(access, (const char*)address, bytes)) {
    report("out of bounds", site, site, current, current);
    return false;
  }
  if ((size_t)address % bytes != 0) {
    report("misaligned", site, site, current, current);
    return false;
  }
  if (counting) count(site, address, (int)bytes);
  if (ShadowMemory* shadow = shadow_of(address, bytes)) {
    shadow->each(address, bytes, [&](Shadow& each) { touch(each, site, is_write(access)); });
    if (!is_shared(access)) shadow->between_blocks(address, bytes, site, stored);
  }
  return true;
}

inline Barrier block_barrier;
inline std::vector<Barrier> warp_barriers, meetings;  // __syncwarp; what moves values between lanes

inline int lanes_of_warp() { return std::min(LANES, (int)rounds.size() - warp() * LANES); }

void sync_block(int site) {
  arrive(block_barrier, (int)rounds.size(), site, [site] {
    epoch++;
    last_barrier = &barriers[site];
    last_barrier->reached++;
    for (size_t w = 0; w < pending.size(); w++) settle((int)w);
  });
}

void sync_warp(int site) {
  arrive(warp_barriers[warp()], lanes_of_warp(), site, [] {
    warp_epoch[warp()]++;
    settle(warp());
  });
}

inline void meet(int site) {
  arrive(meetings[warp()], lanes_of_warp(), site, [] { settle(warp()); });
}

// What lanes of a warp show each other; two slots, so that one meeting is enough.
struct Exchange {
  char bytes[2][LANES][64];
  int turn[LANES] = {0};
};
inline std::vector<Exchange> exchanges;

const char (*exchange(const void* value, size_t bytes, int site))[64] {
  Exchange& mine = exchanges[warp()];
  int slot = mine.turn[lane()]++ % 2;
  memcpy(mine.bytes[slot][lane()], value, bytes);
  meet(site);
  return mine.bytes[slot];
}

struct Copy {
  char* to;
  char data[16];
  int bytes, site;
};
inline std::vector<std::deque<std::vector<Copy>>> groups;  // by thread, the last one still open

// A copy of zeros reads nothing, from nowhere.
void start_copy(void* to, const void* from, int bytes, int from_site, int to_site) {
  if ((from != nullptr && !note(from_site, from, bytes)) || !note(to_site, to, bytes)) return;
  Copy copy{(char*)to, {0}, bytes, to_site};
  if (from != nullptr) memcpy(copy.data, from, bytes);
  groups[current].back().push_back(copy);
  shadows[0].each(to, bytes, [&](Shadow& each) { each.flight = {(int16_t)current, (int16_t)to_site, 0}; });
}

void close_group() { groups[current].push_back({}); }

void wait_groups(int left) {
  auto& mine = groups[current];
  for (; (int)mine.size() - 1 > left; mine.pop_front())
    for (const Copy& copy : mine.front()) {
      memcpy(copy.to, copy.data, copy.bytes);
      shadows[0].each(copy.to, copy.bytes, [&](Shadow& each) {
        each.flight = Touch();
        touch(each, copy.site, true);
      });
    }
}

// Copies that the kernel started and never waited for; their memory is free for the next block.
inline void abandon_copies() {
  for (auto& mine : groups)
    for (auto& group : mine)
      for (const Copy& copy : group) {
        report("copy never awaited", copy.site, copy.site, current, current);
        shadows[0].each(copy.to, copy.bytes, [](Shadow& each) { each.flight = Touch(); });
      }
}

}  // namespace emu
