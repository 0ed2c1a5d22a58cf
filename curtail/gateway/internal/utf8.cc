// SPDX-License-Identifier: Apache-2.0
#include "curtail/gateway/internal/utf8.h"

#include "rapidjson/encodings.h"
#include "rapidjson/memorystream.h"

namespace curtail::gateway::internal {
namespace {

struct Nowhere {
  using Ch = char;
  void Put(char) {}
  void PutUnsafe(char) {}
};

}  // namespace

bool IsUtf8(std::string_view text) {
  rapidjson::MemoryStream in(text.data(), text.size());
  Nowhere out;
  while (in.Tell() < text.size()) {
    if (!rapidjson::UTF8<>::Validate(in, out)) return false;
  }
  return in.Tell() == text.size();
}

}  // namespace curtail::gateway::internal
