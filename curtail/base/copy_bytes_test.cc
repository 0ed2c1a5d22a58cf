// SPDX-License-Identifier: Apache-2.0
#include "curtail/base/copy_bytes.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace curtail {
namespace {

TEST(CopyBytes, CopiesAllAndNothingElseWhateverTheAddresses) {
  std::string from(70'000, '\0');
  for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<char>(i * 2654435761u >> 13);
  std::vector<char> room(80'000);
  for (const size_t size : {size_t{0}, size_t{1}, size_t{1023}, size_t{1024}, size_t{1025}, size_t{65'536}}) {
    for (size_t behind = 0; behind < 40; ++behind) {
      // The place in `room` that lies so far behind `from` within its page.
      const auto to =
          (reinterpret_cast<uintptr_t>(from.data()) + behind - reinterpret_cast<uintptr_t>(room.data())) %
          4096;
      std::fill(room.begin(), room.end(), '#');
      CopyBytes(room.data() + to, from.data(), size);
      ASSERT_EQ(std::string(room.data() + to, size), from.substr(0, size)) << behind;
      if (to > 0) {
        ASSERT_EQ(room[to - 1], '#');
      }
      ASSERT_EQ(room[to + size], '#') << behind << " " << size;
    }
  }
}

}  // namespace
}  // namespace curtail
