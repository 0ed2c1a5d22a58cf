// SPDX-License-Identifier: Apache-2.0
#include "curtail/load/message/json_template.h"

#include "curtail/base/strings.h"
#include "curtail/load/message/internal/json_message.h"
#include "curtail/load/message/internal/json_reader.h"

namespace curtail {

using internal::JsonReader;

JsonTemplate::JsonTemplate(internal::MessageProgram program)
    : program_(std::make_unique<const internal::MessageProgram>(std::move(program))) {}
JsonTemplate::~JsonTemplate() = default;
JsonTemplate::JsonTemplate(JsonTemplate&&) noexcept = default;
JsonTemplate& JsonTemplate::operator=(JsonTemplate&&) noexcept = default;

absl::StatusOr<JsonTemplate> JsonTemplate::Parse(const google::protobuf::Descriptor& type,
                                                 std::string_view json, uint64_t seed) {
  if (json.size() > kMaxJsonBytes) {
    return absl::ResourceExhaustedError(
        Join("a JSON request of ", json.size(), " bytes is longer than ", kMaxJsonBytes));
  }
  JsonReader in(json);
  internal::JsonMessageReader messages(type, seed);
  absl::StatusOr<internal::MessageProgram> program = messages.Read(&in);
  if (!program.ok()) return program.status();
  if (in.Peek() != JsonReader::Kind::kEnd) return in.Error(in.NextOffset(), "more text follows the request");
  return JsonTemplate(*std::move(program));
}

std::string JsonTemplate::Render(uint64_t request) const { return program_->Render(request); }

bool JsonTemplate::fixed() const { return program_->fixed(); }

}  // namespace curtail
