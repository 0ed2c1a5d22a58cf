// SPDX-License-Identifier: Apache-2.0
//
// message_bytes.h - reads and writes the fields of a protobuf message that has no generated code.
#pragma once

#include <string>
#include <string_view>

#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "google/protobuf/wire_format_lite.h"

namespace curtail::internal {

using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;
using google::protobuf::io::CodedOutputStream;
using google::protobuf::io::StringOutputStream;

// Appends fields of a protobuf message to a string.
class MessageWriter {
 public:
  void Bytes(int field, std::string_view bytes) {
    StringOutputStream stream(&out_);
    CodedOutputStream coded(&stream);
    coded.WriteTag(WireFormatLite::MakeTag(field, WireFormatLite::WIRETYPE_LENGTH_DELIMITED));
    coded.WriteVarint32(static_cast<uint32_t>(bytes.size()));
    coded.WriteRaw(bytes.data(), static_cast<int>(bytes.size()));
  }
  void Int(int field, int32_t value) {
    StringOutputStream stream(&out_);
    CodedOutputStream coded(&stream);
    coded.WriteTag(WireFormatLite::MakeTag(field, WireFormatLite::WIRETYPE_VARINT));
    coded.WriteVarint32SignExtended(value);
  }
  std::string Take() { return std::move(out_); }

 private:
  std::string out_;
};

// Calls visit(field, bytes, number) for every field: `bytes` of a length-delimited one, `number` of a varint.
// False when the bytes are no protobuf message.
template <class Visit>
bool ForEachField(std::string_view message, Visit visit) {
  CodedInputStream in(reinterpret_cast<const uint8_t*>(message.data()), static_cast<int>(message.size()));
  while (const uint32_t tag = in.ReadTag()) {
    const int field = WireFormatLite::GetTagFieldNumber(tag);
    std::string bytes;
    uint64_t number = 0;
    uint32_t size = 0;
    switch (WireFormatLite::GetTagWireType(tag)) {
      case WireFormatLite::WIRETYPE_LENGTH_DELIMITED:
        if (!in.ReadVarint32(&size) || !in.ReadString(&bytes, static_cast<int>(size))) return false;
        visit(field, std::string_view(bytes), 0);
        break;
      case WireFormatLite::WIRETYPE_VARINT:
        if (!in.ReadVarint64(&number)) return false;
        visit(field, std::string_view(), number);
        break;
      default:
        if (!WireFormatLite::SkipField(&in, tag)) return false;
    }
  }
  return in.ConsumedEntireMessage();
}

}  // namespace curtail::internal
