// Race detector: for every byte of memory who touched it since the last barrier of the block, and before that one.
//
// Two accesses of one byte race when one is a write, different threads make them, no barrier of the block lies between
// them, and, within a warp, no __syncwarp. Shuffles do not order memory. A barrier is needed when accesses of the two
// epochs that it separates would race without it.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "fibers.h"
#include "sites.h"

namespace emu {

struct Touch {
  int16_t thread = -1, site = -1;
  uint32_t warp_epoch = 0;
  uint32_t published = 0;  // how often its thread had published its stores
};

// The last write and up to three reads: the last, one of another warp, one of another lane.
struct Epoch {
  uint32_t number = 0;
  Touch write, read, other_warp, other_lane;
};

struct Shadow {
  Epoch now, before;
  Touch flight;  // the copy that will overwrite it
  Touch product;  // the last product that began to read it
  int products = 0;  // that may still read it
};

struct Finding {
  const char* kind;
  int first, second;  // sites
  int block;
  int threads[2];
  long count;
};

struct BarrierUse {
  long reached = 0;
  bool needed = false;
};

inline uint32_t epoch;  // grows from block to block, so that shadows need no clearing
inline std::vector<uint32_t> warp_epoch;
inline std::vector<uint32_t> published;  // by thread
inline std::map<int, BarrierUse> barriers;  // by site
inline BarrierUse* last_barrier;
inline std::map<std::array<long, 3>, Finding> findings;
inline int block_number;

inline void report(const char* kind, int first, int second, int one, int other) {
  auto at = findings.try_emplace({(long)(intptr_t)kind, first, second}, Finding{kind, first, second, block_number, {one, other}, 0});
  at.first->second.count++;
}

inline bool unordered(const Touch& touch) {
  if (touch.thread < 0 || touch.thread == current) return false;
  return touch.thread / LANES != warp() || touch.warp_epoch == warp_epoch[warp()];
}

inline const Touch* conflict(const Epoch& past, bool write) {
  if (unordered(past.write)) return &past.write;
  if (!write) return nullptr;
  for (const Touch* read : {&past.read, &past.other_warp, &past.other_lane})
    if (unordered(*read)) return read;
  return nullptr;
}

inline void remember(Epoch& now, Touch touch, bool write) {
  if (write) {
    now.write = touch;
    return;
  }
  if (now.read.thread >= 0 && now.read.thread / LANES != touch.thread / LANES) {
    now.other_warp = now.read;
    now.other_lane = Touch();
  } else if (now.read.thread >= 0 && now.read.thread != touch.thread) {
    now.other_lane = now.read;
  }
  now.read = touch;
}

inline void touch(Shadow& shadow, int site, bool write) {
  if (shadow.now.number != epoch) {
    shadow.before = shadow.now;
    shadow.now = Epoch();
    shadow.now.number = epoch;
  }
  if (shadow.flight.thread >= 0) report("copy in flight", shadow.flight.site, site, shadow.flight.thread, current);
  if (write && shadow.products > 0) report("product in flight", shadow.product.site, site, shadow.product.thread, current);
  if (const Touch* other = conflict(shadow.now, write)) report("race", other->site, site, other->thread, current);
  if (last_barrier != nullptr && !last_barrier->needed && shadow.before.number + 1 == epoch)
    last_barrier->needed = conflict(shadow.before, write) != nullptr;
  remember(shadow.now, {(int16_t)current, (int16_t)site, warp_epoch[warp()], published[current]}, write);
}

// The last write, of this epoch of the block or of the one before.
inline const Touch* last_write(const Shadow& shadow) {
  if (shadow.now.write.thread >= 0) return &shadow.now.write;
  return shadow.before.write.thread >= 0 ? &shadow.before.write : nullptr;
}

// Shadows of a range of addresses, one for each `granule` bytes, in pages that are made where they are touched.
struct ShadowMemory {
  static constexpr size_t PAGE = 1024;
  const char* base = nullptr;
  size_t bytes = 0, granule = 1;
  std::vector<std::unique_ptr<Shadow[]>> pages;
  std::vector<size_t> made;
  std::vector<uint32_t> blocks;  // of global memory, for each granule: the last block that stored there, from 1

  ShadowMemory(const void* base, size_t bytes, size_t granule)
      : base((const char*)base), bytes(bytes), granule(granule), pages(bytes / granule / PAGE + 1) {}

  bool holds(const void* address, size_t size) const {
    const char* at = (const char*)address;
    return at >= base && at + size <= base + bytes;
  }

  template <class Each>
  void each(const void* address, size_t size, Each act) {
    size_t offset = (const char*)address - base;
    for (size_t i = offset / granule; i < (offset + size + granule - 1) / granule; i++) {
      auto& page = pages[i / PAGE];
      if (!page) {
        page.reset(new Shadow[PAGE]);
        made.push_back(i / PAGE);
      }
      act(page[i % PAGE]);
    }
  }

  // Blocks have no order: what one stores no other may read, and none may store another value.
  void between_blocks(const void* address, size_t size, int site, const void* stored) {
    if (blocks.empty()) blocks.resize(bytes / granule + 1);
    size_t offset = (const char*)address - base;
    for (size_t i = 0; i < size; i += granule) {
      uint32_t& last = blocks[(offset + i) / granule];
      bool foreign = last != 0 && last != (uint32_t)block_number + 1;
      bool same = stored != nullptr && memcmp((const char*)address + i, (const char*)stored + i, granule) == 0;
      if (foreign && !same) report("race of blocks", site, site, (int)last - 1, block_number);
      if (stored != nullptr) last = (uint32_t)block_number + 1;
    }
  }

  void forget() {
    for (size_t number : made) pages[number].reset();
    made.clear();
  }
};

}  // namespace emu
