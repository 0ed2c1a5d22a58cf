// SPDX-License-Identifier: Apache-2.0
#include "curtail/rpc/call/parsed_size.h"

#include <cstdint>
#include <unordered_map>

#include "google/protobuf/descriptor.h"
#include "google/protobuf/descriptor.pb.h"
#include "google/protobuf/message.h"

namespace curtail::internal {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;

// malloc and a repeated field's pointer add so much to an object.
constexpr size_t kObject = 24;
constexpr size_t kUnknownField = 32;  // a vector's entries of 16, which double
constexpr size_t kMapEntry = 64;      // a node and its place in the table
constexpr int kDepth = 100;           // protobuf's own limit

// Walks along the wire format (protobuf.dev/programming-guides/encoding).
class Walk {
 public:
  Walk(const google::protobuf::Message& message, const ParsedSizes& most)
      : factory_(*message.GetReflection()->GetMessageFactory()), most_(most) {}

  // False: the bytes are malformed, or there are enough of them.
  bool Add(const Descriptor& type, std::string_view in, int depth) {
    sum_.bytes += SizeOf(type);
    uint64_t known = 0;  // tags repeat
    const FieldDescriptor* field = nullptr;
    while (!in.empty()) {
      uint64_t tag;
      if (sum_.bytes > most_.bytes || sum_.objects > most_.objects || !Varint(&in, &tag) || tag >> 3 == 0)
        return false;
      if (tag != known) field = type.FindFieldByNumber(static_cast<int>(tag >> 3));
      known = tag;
      if (!AddField(field, tag, &in, depth)) return false;
    }
    return true;
  }
  const ParsedSizes& sum() const { return sum_; }

 private:
  static bool Varint(std::string_view* in, uint64_t* value) {
    *value = 0;
    for (size_t i = 0; i < in->size() && i < 10; ++i) {
      const auto byte = static_cast<uint8_t>((*in)[i]);
      *value |= uint64_t{byte & 0x7fu} << (7 * i);
      if (byte >= 0x80) continue;
      in->remove_prefix(i + 1);
      return true;
    }
    return false;
  }

  static bool Skip(std::string_view* in, size_t bytes) {
    if (in->size() < bytes) return false;
    in->remove_prefix(bytes);
    return true;
  }

  bool AddField(const FieldDescriptor* field, uint64_t tag, std::string_view* in, int depth) {
    uint64_t value;
    switch (tag & 7) {
      case 0:
        AddNumber(field);
        return Varint(in, &value);
      case 1:
        AddNumber(field);
        return Skip(in, 8);
      case 2:
        if (!Varint(in, &value) || value > in->size()) return false;
        return AddLong(field, in->substr(0, value), depth) && Skip(in, value);
      case 3:  // a group: its fields count as if they were of this message
        AddObject(kUnknownField);
        return true;
      case 4:
        return true;
      case 5:
        AddNumber(field);
        return Skip(in, 4);
      default:
        return false;
    }
  }

  void AddObject(size_t content) {
    sum_.bytes += kObject + content;
    ++sum_.objects;
  }

  void AddNumber(const FieldDescriptor* field) {
    if (field == nullptr) {
      sum_.bytes += kUnknownField;
    } else if (field->is_repeated()) {
      sum_.bytes += 2 * sizeof(uint64_t);
    }
  }

  bool AddLong(const FieldDescriptor* field, std::string_view content, int depth) {
    if (field != nullptr && field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      AddObject(0);
      return depth > 0 && Add(*field->message_type(), content, depth - 1);
    }
    if (field != nullptr && field->cpp_type() != FieldDescriptor::CPPTYPE_STRING) {
      sum_.bytes += content.size() * sizeof(uint64_t);  // packed: of a byte each, at worst
    } else {
      AddObject(sizeof(std::string) + content.size() + (field == nullptr ? kUnknownField : 0));
    }
    return true;
  }

  size_t SizeOf(const Descriptor& type) {
    if (type.options().map_entry()) return kMapEntry;  // it has no object of its own
    const auto [it, is_new] = sizes_.try_emplace(&type, 0);
    if (is_new) it->second = factory_.GetPrototype(&type)->SpaceUsedLong();
    return it->second;
  }

  google::protobuf::MessageFactory& factory_;
  const ParsedSizes most_;
  ParsedSizes sum_;
  std::unordered_map<const Descriptor*, size_t> sizes_;
};

}  // namespace

ParsedSizes ParsedSize(std::string_view bytes, const google::protobuf::MessageLite& type,
                       const ParsedSizes& most) {
  const auto* const message = dynamic_cast<const google::protobuf::Message*>(&type);
  if (message == nullptr) return {};
  Walk walk(*message, most);
  walk.Add(*message->GetDescriptor(), bytes, kDepth);
  return walk.sum();
}

}  // namespace curtail::internal
