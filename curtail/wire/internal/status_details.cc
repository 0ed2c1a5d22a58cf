// SPDX-License-Identifier: Apache-2.0
//
// The two messages are read and written by hand, because this layer knows no protobuf:
//
//   google.rpc.Status     1: code (varint)   2: message    3: details, repeated Any
//   google.protobuf.Any   1: type_url        2: value

#include "curtail/wire/internal/status_details.h"

#include <cstdint>
#include <optional>

#include "absl/strings/cord.h"
#include "curtail/wire/metadata.h"

namespace curtail::wire::internal {
namespace {

constexpr uint8_t kVarint = 0;
constexpr uint8_t kFixed64 = 1;
constexpr uint8_t kBytes = 2;
constexpr uint8_t kFixed32 = 5;

void AppendVarint(uint64_t value, std::string* out) {
  for (; value >= 0x80; value >>= 7) out->push_back(static_cast<char>(value | 0x80));
  out->push_back(static_cast<char>(value));
}

void AppendTag(uint32_t field, uint8_t type, std::string* out) { AppendVarint(field << 3 | type, out); }

void AppendBytes(uint32_t field, std::string_view bytes, std::string* out) {
  AppendTag(field, kBytes, out);
  AppendVarint(bytes.size(), out);
  out->append(bytes);
}

// A Fields reads the fields of a serialized message one after the other.
class Fields {
 public:
  explicit Fields(std::string_view message) : rest_(message) {}

  // False at the end, and where the bytes are no message.
  bool Next() {
    const std::optional<uint64_t> tag = Varint();
    if (!tag) return false;
    number = *tag >> 3;
    type = static_cast<uint8_t>(*tag & 7);
    switch (type) {
      case kVarint:
        return Varint().has_value();
      case kFixed64:
        return Take(8);
      case kFixed32:
        return Take(4);
      case kBytes: {
        const std::optional<uint64_t> size = Varint();
        return size && Take(*size);
      }
      default:
        return false;  // groups are in neither message
    }
  }

  uint64_t number = 0;
  uint8_t type = 0;
  std::string_view bytes;  // of a field of type kBytes

 private:
  std::optional<uint64_t> Varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
      const auto byte = static_cast<uint8_t>(rest_.front());
      rest_.remove_prefix(1);
      value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    return std::nullopt;
  }
  bool Take(uint64_t size) {
    if (size > rest_.size()) return false;
    bytes = rest_.substr(0, static_cast<size_t>(size));
    rest_.remove_prefix(bytes.size());
    return true;
  }

  std::string_view rest_;
};

void AddDetail(std::string_view any, absl::Status* status) {
  std::string_view url;
  std::string_view value;
  for (Fields fields(any); fields.Next();) {
    if (fields.type != kBytes) continue;
    if (fields.number == 1) url = fields.bytes;
    if (fields.number == 2) value = fields.bytes;
  }
  const absl::string_view name(url.data(), url.size());
  if (url.empty() || status->GetPayload(name)) return;
  status->SetPayload(name, absl::Cord(absl::string_view(value.data(), value.size())));
}

}  // namespace

std::string EncodeDetails(const absl::Status& status, std::string_view message) {
  std::string details;
  status.ForEachPayload([&details](absl::string_view url, const absl::Cord& value) {
    std::string any;
    AppendBytes(1, {url.data(), url.size()}, &any);
    AppendBytes(2, std::string(value), &any);
    AppendBytes(3, any, &details);
  });
  if (details.empty()) return details;
  std::string bytes;
  AppendTag(1, kVarint, &bytes);
  AppendVarint(static_cast<uint64_t>(status.code()), &bytes);
  AppendBytes(2, message, &bytes);
  return Base64Encode(bytes.append(details));
}

void DecodeDetails(std::string_view base64, absl::Status* status) {
  const std::optional<std::string> bytes = Base64Decode(base64);
  if (!bytes) return;
  int details = 0;
  for (Fields fields(*bytes); details < kMaxDetails && fields.Next();) {
    if (fields.number != 3 || fields.type != kBytes) continue;
    ++details;
    AddDetail(fields.bytes, status);
  }
}

}  // namespace curtail::wire::internal
