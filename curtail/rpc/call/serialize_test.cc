// SPDX-License-Identifier: Apache-2.0
//
// Property: messages are written and read as by protobuf itself, whatever lengths their strings have.
#include "curtail/rpc/call/serialize.h"

#include <gtest/gtest.h>

#include "curtail/base/rng.h"
#include "google/protobuf/struct.pb.h"

namespace curtail::internal {
namespace {

std::string Letters(size_t size, Rng& rng) {
  std::string text(size, 'a');
  for (char& letter : text) letter = static_cast<char>('a' + rng.Below(26));
  return text;
}

TEST(Serialize, WritesAndReadsWhatProtobufDoes) {
  Rng rng(7);
  std::string bytes;
  for (const size_t size : {size_t{0}, size_t{1}, size_t{100}, size_t{4096}, size_t{16'000}, size_t{16'384},
                            size_t{65'536}, size_t{300'000}}) {
    google::protobuf::ListValue list;
    for (const size_t length : {size, size_t{10}, size / 3, size_t{5000}, size}) {
      list.add_values()->set_string_value(Letters(length, rng));
      (*list.add_values()->mutable_struct_value()->mutable_fields())["name"].set_string_value(
          Letters(length / 2, rng));
      list.add_values()->set_number_value(static_cast<double>(length));
    }
    ASSERT_TRUE(Serialize(list, &bytes));
    EXPECT_EQ(bytes, list.SerializeAsString()) << size;
    google::protobuf::ListValue read;
    ASSERT_TRUE(Parse(bytes, &read));
    EXPECT_EQ(read.SerializeAsString(), bytes);
    EXPECT_FALSE(Parse(std::string_view(bytes).substr(0, bytes.size() - 1), &read)) << "cut";
  }
}

}  // namespace
}  // namespace curtail::internal
