// What warps ask memory for: sectors of 32 bytes of global memory, wavefronts of 32 banks of shared memory.
#pragma once
#include <algorithm>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "fibers.h"
#include "sites.h"

namespace emu {

struct Request {
  uint64_t address[LANES];
  uint64_t mask = 0;
  int bytes = 0;
};

// `units` are sectors or wavefronts, `ideal` as many as the distinct bytes need at least.
struct Sum {
  long requests = 0, units = 0, ideal = 0, bytes = 0;
};

// Where a thread stands in the loops around it: lanes in the same rounds of the same loops access memory together, also
// where a condition has left out some of them in rounds before.
struct Rounds {
  struct Loop { int line; uint64_t outside, number; };
  std::vector<Loop> loops;
  uint64_t path = 0;
};

inline std::vector<Sum> sums;                                                    // by site
inline std::vector<std::vector<std::unordered_map<uint64_t, Request>>> pending;  // warp, site, place in loops
inline std::vector<Rounds> rounds;                                               // by thread

inline uint64_t mixed(uint64_t a, uint64_t b) { return (a ^ b) * 0x9e3779b97f4a7c15ull + (a >> 29); }

bool goes_on(int line, bool condition) {
  Rounds& mine = rounds[current];
  if (mine.loops.empty() || mine.loops.back().line != line) mine.loops.push_back({line, mine.path, 0});
  Rounds::Loop& loop = mine.loops.back();
  mine.path = condition ? mixed(mixed(loop.outside, line), ++loop.number) : loop.outside;
  if (!condition) mine.loops.pop_back();
  return condition;
}

inline void count(int site, const void* address, int bytes) {
  auto& log = pending[warp()];
  if ((int)log.size() <= site) log.resize(site + 1);
  uint64_t place = rounds[current].path;
  while (log[site][place].mask >> lane() & 1) place = mixed(place, 1);
  Request& request = log[site][place];
  request.address[lane()] = (uint64_t)address;
  request.mask |= 1ull << lane();
  request.bytes = bytes;
}

struct Distinct {
  uint64_t values[LANES * 4];
  int size = 0;
  void add(uint64_t value) { values[size++] = value; }
  int unique() {
    std::sort(values, values + size);
    return size = (int)(std::unique(values, values + size) - values);
  }
};

inline void add_sectors(Sum& sum, const Request& request) {
  Distinct sectors, starts;
  for (int i = 0; i < LANES; i++)
    if (request.mask >> i & 1) {
      sectors.add(request.address[i] / 32);
      if (request.bytes > 1) sectors.add((request.address[i] + request.bytes - 1) / 32);
      starts.add(request.address[i]);
    }
  long bytes = (long)starts.unique() * request.bytes;
  sum.units += sectors.unique();
  sum.ideal += (bytes + 31) / 32;
  sum.bytes += bytes;
}

// Wide requests are served in phases, by halves of a warp: 16 bytes that all lanes share take two wavefronts (the
// counters of an H100; by quarters of a warp it would be four).
inline void add_wavefronts(Sum& sum, const Request& request) {
  int phases = std::clamp(request.bytes / 4, 1, 2), lanes = LANES / phases;
  for (int phase = 0; phase < phases; phase++) {
    Distinct words;
    for (int i = phase * lanes; i < (phase + 1) * lanes; i++)
      if (request.mask >> i & 1)
        for (int byte = 0; byte < request.bytes; byte += 4) words.add((request.address[i] + byte) / 4);
    int banks[32] = {0};
    for (int i = 0, n = words.unique(); i < n; i++) banks[words.values[i] % 32]++;
    sum.units += *std::max_element(banks, banks + 32);
    sum.ideal += (words.size + 31) / 32;
    sum.bytes += 4l * words.size;
  }
}

// Add up the requests of a warp whose lanes have all come to the same place.
inline void settle(int warp) {
  auto& log = pending[warp];
  if (sums.size() < sites.size()) sums.resize(sites.size());
  for (size_t site = 0; site < log.size(); site++) {
    for (const auto& [place, request] : log[site]) {
      sums[site].requests++;
      is_shared(sites[site].access) ? add_wavefronts(sums[site], request) : add_sectors(sums[site], request);
    }
    log[site].clear();
  }
}

}  // namespace emu
