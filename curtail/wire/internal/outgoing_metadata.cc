// SPDX-License-Identifier: Apache-2.0

#include "curtail/wire/internal/outgoing_metadata.h"

#include "absl/strings/str_cat.h"

namespace curtail::wire::internal {
namespace {

// Peers refuse header lists somewhere above 8 KiB; ones that were told to take more, take this.
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

void ForEachSendable(const Metadata& metadata,
                     absl::FunctionRef<void(std::string_view, std::string_view)> send) {
  size_t bytes = 0;
  for (const Metadata::Entry& entry : metadata) {
    if (!MaySend(entry) || bytes + WireBytes(entry) > kMaxMetadataBytes) continue;
    bytes += WireBytes(entry);
    if (IsBinaryKey(entry.first)) {
      send(entry.first, Base64Encode(entry.second));
    } else {
      send(entry.first, entry.second);
    }
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
