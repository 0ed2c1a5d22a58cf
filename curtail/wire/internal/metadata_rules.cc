// SPDX-License-Identifier: Apache-2.0

#include "curtail/wire/internal/metadata_rules.h"

#include "absl/strings/escaping.h"
#include "curtail/base/strings.h"

namespace curtail::wire {
namespace internal {
namespace {

// Peers refuse header lists somewhere above 8 KiB; ones that were told to take more, take this.
constexpr size_t kMaxMetadataBytes = 32u << 10;

bool IsBinaryKey(std::string_view key) { return key.ends_with("-bin"); }

// An upper bound of what the entry adds to a header block.
size_t WireBytes(const Metadata::Entry& entry) {
  return entry.first.size() + entry.second.size() * (IsBinaryKey(entry.first) ? 2 : 1) + 32;
}

// Why an entry may not be sent, or nothing.
std::string_view WhyNot(std::string_view key, std::string_view value) {
  if (IsReservedKey(key)) return "the key is empty, or HTTP's or gRPC's own";
  if (!IsCustomKey(key)) return "a key has letters, digits, '-', '_' and '.'";
  if (IsBinaryKey(key) || IsTextValue(value)) return {};
  return "the value is not printable ASCII, or has space at an end; a key that ends in -bin takes any bytes";
}

bool MaySend(const Metadata::Entry& entry) { return WhyNot(entry.first, entry.second).empty(); }

void SendEntry(const Metadata::Entry& entry,
               absl::FunctionRef<void(std::string_view, std::string_view)> send) {
  if (IsBinaryKey(entry.first)) return send(entry.first, Base64Encode(entry.second));
  send(entry.first, entry.second);
}

}  // namespace

void ForEachSendable(const Metadata& metadata,
                     absl::FunctionRef<void(std::string_view, std::string_view)> send) {
  size_t bytes = 0;
  for (const Metadata::Entry& entry : metadata) {
    if (!MaySend(entry) || bytes + WireBytes(entry) > kMaxMetadataBytes) continue;
    bytes += WireBytes(entry);
    SendEntry(entry, send);
  }
}

void ForEach(const Metadata& metadata, absl::FunctionRef<void(std::string_view, std::string_view)> send) {
  for (const Metadata::Entry& entry : metadata) SendEntry(entry, send);
}

size_t ListBytes(const Metadata& metadata) {
  size_t bytes = 0;
  for (const Metadata::Entry& entry : metadata) bytes += WireBytes(entry);
  return bytes;
}

absl::Status CheckMetadata(const Metadata& metadata, size_t* bytes) {
  *bytes = 0;
  for (const auto& [key, value] : metadata) {
    *bytes += WireBytes({key, value});
    const std::string_view wrong = WhyNot(key, value);
    if (wrong.empty()) [[likely]]
      continue;
    return absl::InvalidArgumentError(
        Join("metadata \"", absl::CHexEscape({key.data(), key.size()}), "\" may not be sent: ", wrong));
  }
  if (*bytes <= kMaxMetadataBytes) return absl::OkStatus();
  return absl::InvalidArgumentError(
      Join("metadata of ", *bytes, " bytes may not be sent: at most ", kMaxMetadataBytes));
}

}  // namespace internal

absl::Status CheckMetadata(const Metadata& metadata) {
  size_t bytes = 0;
  return internal::CheckMetadata(metadata, &bytes);
}

}  // namespace curtail::wire
