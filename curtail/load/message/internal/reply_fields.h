// SPDX-License-Identifier: Apache-2.0
//
// reply_fields.h - "{{reply.list.accounts[0].id}}": a field of the reply to an earlier step of a journey.
//
// A path names the step, then fields, by their names in the .proto file or in JSON. A field that is a list has an index,
// or ".length" behind it. The last one is neither a list nor a message. Values are text, as JSON has it without quotes;
// bytes are as they are.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "curtail/load/message/journey.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/dynamic_message.h"

namespace curtail::internal {

// A field of a reply, and the place of its value among the kept ones.
struct ReplyField {
  size_t slot = 0;
  bool bytes = false;  // the field has the type bytes
  // The field; null: the value is the length of a list.
  const google::protobuf::FieldDescriptor* field = nullptr;
};

// The number that a template is rendered for and, in a journey, the values of its replies.
struct Draw {
  // Not explicit: most templates know the number only.
  Draw(uint64_t number) : number(number) {}

  uint64_t number;
  const KeptValues* kept = nullptr;
  absl::Status* error = nullptr;  // with `kept`: why a value is absent or does not fit
};

// ReplyFields holds the steps of a journey whose replies are known, and the fields that templates name. Thread-compatible.
class ReplyFields {
 public:
  // The reply to step `name` has this type, which outlives the object. Steps come in order.
  void AddStep(std::string name, const google::protobuf::Descriptor& reply);
  // The field of a path such as "reply.list.accounts[0].id". Errors: INVALID_ARGUMENT, without a position.
  [[nodiscard]] absl::StatusOr<ReplyField> Find(std::string_view path);
  // The same of the reply to step number `step`: "accounts[0].id".
  [[nodiscard]] absl::StatusOr<ReplyField> FindIn(size_t step, std::string_view path);
  // Keeps the named fields of the reply to step number `step`. Errors: INTERNAL, it is not of that type.
  absl::Status Keep(size_t step, std::string_view reply, KeptValues* kept) const;

 private:
  static constexpr int kNoIndex = -1;
  static constexpr int kLength = -2;
  struct Hop {
    const google::protobuf::FieldDescriptor* field;
    int index;  // in a list; kNoIndex: the field is not one; kLength: its length is meant
  };
  struct Named {
    std::string path;
    std::vector<Hop> hops;
  };
  struct Step {
    std::string name;
    const google::protobuf::Descriptor* reply;
    std::vector<size_t> slots;
  };

  absl::StatusOr<std::vector<Hop>> FindHops(const google::protobuf::Descriptor& reply,
                                            std::string_view path) const;

  std::vector<Step> steps_;
  std::vector<Named> named_;  // by slot
  std::unique_ptr<google::protobuf::DynamicMessageFactory> factory_ =
      std::make_unique<google::protobuf::DynamicMessageFactory>();
};

// Appends the kept value of `field`, which `text` names in an error. False, with draw.error set, if there is none.
bool AppendKept(const ReplyField& field, std::string_view text, const Draw& draw, std::string* out);

}  // namespace curtail::internal
