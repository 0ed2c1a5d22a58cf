// SPDX-License-Identifier: Apache-2.0
#include "curtail/rpc/call/serialize.h"

#include <algorithm>

#include "curtail/base/copy_bytes.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"

namespace curtail::internal {
namespace {

// Hands the room for a message out in small parts. So a string that is longer than a part comes by WriteAliasedRaw().
class LongOutput final : public google::protobuf::io::ZeroCopyOutputStream {
 public:
  explicit LongOutput(std::string* bytes) : at_(bytes->data()), end_(at_ + bytes->size()) {}

  bool Next(void** data, int* size) override {
    if (at_ == end_) return false;
    const auto part = std::min<ptrdiff_t>(kPart, end_ - at_);
    *data = at_;
    *size = static_cast<int>(part);
    at_ += part;
    return true;
  }
  void BackUp(int count) override { at_ -= count; }
  int64_t ByteCount() const override { return at_ - begin_; }
  bool AllowsAliasing() const override { return true; }
  bool WriteAliasedRaw(const void* data, int size) override {
    if (size > end_ - at_) return false;
    CopyBytes(at_, static_cast<const char*>(data), static_cast<size_t>(size));
    at_ += size;
    return true;
  }

 private:
  static constexpr ptrdiff_t kPart = 4096;

  char* at_;
  char* const begin_ = at_;
  char* const end_;
};

}  // namespace

void SerializeLong(const google::protobuf::MessageLite& message, std::string* bytes) {
  LongOutput output(bytes);
  google::protobuf::io::CodedOutputStream stream(&output);
  stream.EnableAliasing(true);
  message.SerializeWithCachedSizes(&stream);
}

bool ParseLong(std::string_view bytes, google::protobuf::MessageLite* message) {
  if (bytes.size() > INT_MAX) return false;
  // A string that is longer than a block is put together of blocks, which memcpy() copies without the slow instruction.
  constexpr int kBlock = 2048;
  google::protobuf::io::ArrayInputStream input(bytes.data(), static_cast<int>(bytes.size()), kBlock);
  return message->ParseFromZeroCopyStream(&input);
}

}  // namespace curtail::internal
