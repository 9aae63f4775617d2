// The emulator's own code, the same for all kernels.
#include "launch.h"

namespace emu {

int current;
char* shared_memory;
emu_dim3 block_index, block_size, grid_size;

int site_number(int line, Access access, const char* text) {
  sites.push_back({line, access, text});
  return (int)sites.size() - 1;
}

}  // namespace emu
