// SPDX-License-Identifier: Apache-2.0
//
// DESIGN. The executable's thread_local variables lie in one block, of which the dynamic linker knows the
// address in the present thread, and the initial contents (ELF Handling for Thread-Local Storage, section 3).
// All coroutines share the block's address; at a switch its contents are exchanged.
#include "tests/model/thread_locals.h"

#include <link.h>

#include <algorithm>
#include <cstring>

namespace curtail::model {
namespace {

struct Block {
  std::byte* address = nullptr;
  size_t size = 0;
  const std::byte* initial = nullptr;
  size_t initial_size = 0;  // the rest begins as zeroes
};

int Describe(dl_phdr_info* info, size_t, void* result) {
  auto* block = static_cast<Block*>(result);
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& header = info->dlpi_phdr[i];
    if (header.p_type != PT_TLS) continue;
    block->address = static_cast<std::byte*>(info->dlpi_tls_data);
    block->size = header.p_memsz;
    block->initial = reinterpret_cast<const std::byte*>(info->dlpi_addr + header.p_vaddr);
    block->initial_size = header.p_filesz;
  }
  return 1;  // the executable comes first; no more
}

const Block& TheBlock() {
  static const Block block = [] {
    Block found;
    dl_iterate_phdr(Describe, &found);
    return found;
  }();
  return block;
}

}  // namespace

ThreadLocals::ThreadLocals() : bytes_(TheBlock().size) {
  std::copy_n(TheBlock().initial, TheBlock().initial_size, bytes_.begin());
}

void ThreadLocals::Exchange() {
  if (!bytes_.empty()) std::swap_ranges(bytes_.begin(), bytes_.end(), TheBlock().address);
}

}  // namespace curtail::model
