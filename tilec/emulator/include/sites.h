// Places in the source that touch memory or wait.
#pragma once
#include <vector>

#include "engine.h"

namespace emu {

inline bool is_write(Access access) { return access == GLOBAL_WRITE || access == SHARED_WRITE; }
inline bool is_shared(Access access) { return access == SHARED_READ || access == SHARED_WRITE; }

struct Site {
  int line;
  Access access;
  const char* text;
};

inline std::vector<Site> sites;

}  // namespace emu
