// Products of warpgroups out of shared memory: they read while they are in flight, and sums are there when waited for.
#pragma once
#include <cstring>
#include <vector>

#include "block.h"

namespace emu {

constexpr int WARPGROUP = 4;  // warps

struct Warpgroup {
  Barrier barrier;
  unsigned long long left = 0, right = 0;
};
inline std::vector<Warpgroup> warpgroups;

struct Product {
  void* sums;
  std::vector<char> added;
  int count;
  void (*add)(void*, const void*, int);
};

// Those of a thread: begun, committed; what it marked as being read, and whether it has fenced its sums.
struct Products {
  std::vector<Product> open, committed;
  std::vector<std::pair<const void*, int>> reading;
  bool fenced = false;
  int site = 0;
};
inline std::vector<Products> products;

void publish() { published[current]++; }

void fence_sums() { products[current].fenced = true; }

// All threads of a warpgroup come to the same product of the same matrices.
void meet_warpgroup(unsigned long long left, unsigned long long right, int site) {
  int group = warp() / WARPGROUP, threads = std::min(WARPGROUP * LANES, (int)rounds.size() - group * WARPGROUP * LANES);
  Warpgroup& mine = warpgroups[group];
  if (mine.barrier.arrived == 0) {
    mine.left = left;
    mine.right = right;
  } else if (mine.left != left || mine.right != right) {
    report("other matrices", site, site, current, current);
  }
  if (!products[current].fenced) report("sums without a fence", site, site, current, current);
  arrive(mine.barrier, threads, site, [] {});
}

void read_factor(const void* address, int bytes, int site) {
  if (!allowed(SHARED_READ, (const char*)address, bytes)) {
    report("out of bounds", site, site, current, current);
    return;
  }
  shadows[0].each(address, bytes, [&](Shadow& each) {
    if (const Touch* write = last_write(each))
      if (write->published == published[write->thread]) report("store never published", write->site, site, write->thread, current);
    touch(each, site, false);
    each.product = {(int16_t)current, (int16_t)site, 0};
    each.products++;
  });
  products[current].reading.push_back({address, bytes});
}

void hold_sums(void* sums, const void* added, int count, void (*add)(void*, const void*, int), int bytes, int site) {
  products[current].open.push_back({sums, std::vector<char>((const char*)added, (const char*)added + bytes), count, add});
  products[current].site = site;
}

void close_products() {
  Products& mine = products[current];
  for (Product& each : mine.open) mine.committed.push_back(std::move(each));
  mine.open.clear();
}

void wait_products() {
  Products& mine = products[current];
  for (const Product& each : mine.committed) each.add(each.sums, each.added.data(), each.count);
  mine.committed.clear();
  for (auto& [address, bytes] : mine.reading) shadows[0].each(address, bytes, [](Shadow& each) { each.products--; });
  mine.reading.clear();
  mine.fenced = false;
}

// Products that were begun and never waited for.
inline void abandon_products() {
  for (int thread = 0; thread < (int)products.size(); thread++) {
    Products& mine = products[thread];
    if (!mine.open.empty() || !mine.committed.empty()) report("product never awaited", mine.site, mine.site, thread, thread);
    for (auto& [address, bytes] : mine.reading) shadows[0].each(address, bytes, [](Shadow& each) { each.products = 0; });
  }
}

}  // namespace emu
