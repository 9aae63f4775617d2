// Launches: run blocks, tell what was found as JSON.
#pragma once
#include <string>
#include <string>

#include "block.h"
#include "products.h"

namespace emu {

struct Launch {
  void** arguments;
  const Region* regions;
  int region_count;
  unsigned grid, threads;
  size_t shared_bytes;
  const unsigned* blocks;
  int block_count;
  int order;
  unsigned seed;
  int counting;
};

inline void start_launch(const Launch& launch) {
  int warps = ((int)launch.threads + LANES - 1) / LANES;
  shared_bytes = launch.shared_bytes;
  shared_memory = (char*)aligned_alloc(1024, (shared_bytes + 2047) / 1024 * 1024);
  regions.assign(launch.regions, launch.regions + launch.region_count);
  shadows.clear();
  shadows.emplace_back(shared_memory, shared_bytes, 1);
  for (const Region& region : regions)
    if (region.writable) shadows.emplace_back(region.base, region.bytes, region.granule);
  counting = launch.counting;
  arguments = launch.arguments;
  grid_size.x = launch.grid;
  block_size.x = launch.threads;
  warp_epoch.assign(warps, 0);
  findings.clear();
  barriers.clear();
  sums.assign(sites.size(), Sum());
  pending.assign(warps, {});
  rounds.assign(launch.threads, {});
  published.assign(launch.threads, 0);
  epoch = 1;
}

inline void start_block(unsigned number, int threads) {
  block_number = (int)number;
  block_index.x = number;
  epoch += 2;  // nothing of the block before can be mistaken for this one's
  last_barrier = nullptr;
  memset(shared_memory, 0xff, shared_bytes);
  for (size_t i = 1; i < shadows.size(); i++) shadows[i].forget();
  block_barrier = Barrier();
  warp_barriers.assign(warp_epoch.size(), Barrier());
  meetings.assign(warp_epoch.size(), Barrier());
  exchanges.assign(warp_epoch.size(), Exchange());
  groups.assign(threads, {{}});
  rounds.assign(threads, {});
  published.assign(threads, 0);
  warpgroups.assign(threads / (WARPGROUP * LANES) + 1, Warpgroup());
  products.assign(threads, {});
  prepare(threads);
}

inline void report_waiting() {
  for (size_t i = 0; i < rounds.size(); i++)
    if (!fibers[i].done) report("never met", fibers[i].site, fibers[i].site, (int)i, (int)i);
}

inline std::string quoted(const char* text) {
  std::string result = "\"";
  for (; *text; text++) {
    if (*text == '"' || *text == '\\') result += '\\';
    result += *text == '\n' || *text == '\t' ? ' ' : *text;
  }
  return result + "\"";
}

inline std::string place(int site) {
  static const char* const names[] = {"global read", "global write", "shared read", "shared write", "barrier"};
  const Site& at = sites[site];
  return "{\"access\":\"" + std::string(names[at.access]) + "\",\"line\":" + std::to_string(at.line) + ",\"text\":" + quoted(at.text) + "}";
}

inline std::string number(const char* name, long value) { return std::string(",\"") + name + "\":" + std::to_string(value); }

inline std::string json(const Finding& finding) {
  return "{\"kind\":" + quoted(finding.kind) + ",\"first\":" + place(finding.first) + ",\"second\":" + place(finding.second) +
         ",\"threads\":[" + std::to_string(finding.threads[0]) + "," + std::to_string(finding.threads[1]) + "]" +
         number("block", finding.block) + number("count", finding.count) + "}";
}

inline std::string json(int site, const BarrierUse& use) {
  return "{\"line\":" + std::to_string(sites[site].line) + number("reached", use.reached) + ",\"needed\":" + (use.needed ? "true" : "false") + "}";
}

inline std::string json(int site, const Sum& sum) {
  return "{\"site\":" + place(site) + number("requests", sum.requests) + number("units", sum.units) + number("ideal", sum.ideal) +
         number("bytes", sum.bytes) + "}";
}

inline std::string listed(const std::vector<std::string>& items) {
  std::string all;
  for (const std::string& item : items) all += (all.empty() ? "" : ",") + item;
  return "[" + all + "]";
}

inline std::string results() {
  std::vector<std::string> found, used, asked;
  for (auto& [key, finding] : findings) found.push_back(json(finding));
  for (auto& [site, use] : barriers) used.push_back(json(site, use));
  for (size_t site = 0; site < sums.size(); site++)
    if (sums[site].requests > 0) asked.push_back(json((int)site, sums[site]));
  return "{\"findings\":" + listed(found) + ",\"barriers\":" + listed(used) + ",\"requests\":" + listed(asked) + "}";
}

inline std::string answer;

const char* run(void (*kernel)(void**), const Launch& launch) {
  body = kernel;
  start_launch(launch);
  for (int i = 0; i < launch.block_count; i++) {
    start_block(launch.blocks[i], (int)launch.threads);
    if (!run_block((int)launch.threads, (Order)launch.order, launch.seed + i)) report_waiting();
    for (size_t w = 0; w < pending.size(); w++) settle((int)w);
    abandon_copies();
    abandon_products();
  }
  free(shared_memory);
  answer = results();
  return answer.c_str();
}

}  // namespace emu
