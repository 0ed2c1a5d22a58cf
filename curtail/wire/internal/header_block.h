// SPDX-License-Identifier: Apache-2.0
//
// header_block.h - the list of header fields that one HEADERS frame is made from.
//
// Lives on the stack of the function that submits it: nghttp2 copies what is not marked static.
#pragma once

#include <nghttp2/nghttp2.h>

#include <string>
#include <string_view>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "curtail/wire/metadata.h"

namespace curtail::wire::internal {

// A field whose name and value have static storage, or outlive the session: nothing is copied.
inline nghttp2_nv StaticField(std::string_view name, std::string_view value) {
  // nghttp2's struct predates const; it does not write.
  return {reinterpret_cast<uint8_t*>(const_cast<char*>(name.data())),
          reinterpret_cast<uint8_t*>(const_cast<char*>(value.data())), name.size(), value.size(),
          NGHTTP2_NV_FLAG_NO_COPY_NAME | NGHTTP2_NV_FLAG_NO_COPY_VALUE};
}

// A HeaderBlock collects fields in order. Thread-compatible.
class HeaderBlock {
 public:
  HeaderBlock() = default;
  HeaderBlock(const HeaderBlock&) = delete;
  HeaderBlock& operator=(const HeaderBlock&) = delete;

  void Add(const nghttp2_nv& field) { fields_.push_back(field); }
  // The name is static; the value lives until the block is submitted. `never_index` keeps values that differ
  // on every call out of the HPACK tables.
  void AddValue(std::string_view name, std::string_view value, bool never_index = false);
  // Adds the entries that may be sent, as long as they fit; others are left out. `metadata` lives until the
  // block is submitted.
  void AddMetadata(const Metadata& metadata);

  const nghttp2_nv* data() const { return fields_.data(); }
  size_t size() const { return fields_.size(); }

 private:
  absl::InlinedVector<nghttp2_nv, 12> fields_;
  // Base64 of the binary values. Reserved before the first entry: fields_ points into the strings.
  std::vector<std::string> encoded_;
};

// Whether all entries may be sent and fit one header block. Errors: INVALID_ARGUMENT.
absl::Status CheckMetadata(const Metadata& metadata);

}  // namespace curtail::wire::internal
