// SPDX-License-Identifier: Apache-2.0

#include "curtail/wire/internal/header_block.h"

#include "absl/strings/str_cat.h"

namespace curtail::wire::internal {
namespace {

// nghttp2 sends header blocks of at most 64 KiB; this leaves room for the fields that are not metadata.
constexpr size_t kMaxMetadataBytes = 32u << 10;

bool IsBinaryKey(std::string_view key) { return key.ends_with("-bin"); }

// An upper bound of what the entry adds to a header block.
size_t WireBytes(const Metadata::Entry& entry) {
  return entry.first.size() + entry.second.size() * (IsBinaryKey(entry.first) ? 2 : 1) + 32;
}

bool MaySend(const Metadata::Entry& entry) {
  return IsCustomKey(entry.first) && (IsBinaryKey(entry.first) || IsTextValue(entry.second));
}

}  // namespace

void HeaderBlock::AddValue(std::string_view name, std::string_view value, bool never_index) {
  nghttp2_nv field = StaticField(name, value);
  field.flags = NGHTTP2_NV_FLAG_NO_COPY_NAME;
  if (never_index) field.flags |= NGHTTP2_NV_FLAG_NO_INDEX;
  fields_.push_back(field);
}

void HeaderBlock::AddMetadata(const Metadata& metadata) {
  if (metadata.empty()) return;
  encoded_.reserve(metadata.size());
  size_t bytes = 0;
  for (const Metadata::Entry& entry : metadata) {
    if (!MaySend(entry) || bytes + WireBytes(entry) > kMaxMetadataBytes) continue;
    bytes += WireBytes(entry);
    std::string_view value = entry.second;
    if (IsBinaryKey(entry.first)) value = encoded_.emplace_back(Base64Encode(value));
    nghttp2_nv field = StaticField(entry.first, value);
    field.flags = NGHTTP2_NV_FLAG_NONE;
    fields_.push_back(field);
  }
}

absl::Status CheckMetadata(const Metadata& metadata) {
  size_t bytes = 0;
  for (const Metadata::Entry& entry : metadata) {
    if (!MaySend(entry)) {
      return absl::InvalidArgumentError(
          absl::StrCat("metadata \"", entry.first,
                       "\" may not be sent: keys are lower case and not reserved, values "
                       "printable ASCII unless the key ends in -bin"));
    }
    bytes += WireBytes(entry);
  }
  if (bytes <= kMaxMetadataBytes) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("metadata of ", bytes, " bytes; at most ", kMaxMetadataBytes));
}

}  // namespace curtail::wire::internal
