// SPDX-License-Identifier: Apache-2.0
#include "curtail/load/message/internal/message_program.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "curtail/base/strings.h"
#include "curtail/load/message/internal/json_scalar.h"

namespace curtail::internal {
namespace {

using google::protobuf::FieldDescriptor;

template <class Word>
void AppendLittleEndian(Word word, std::string* out) {
  for (size_t i = 0; i < sizeof word; ++i, word = static_cast<Word>(word >> 7 >> 1))
    *out += static_cast<char>(word);
}

uint64_t ZigZag(uint64_t bits) { return bits << 1 ^ (0 - (bits >> 63)); }

}  // namespace

void AppendVarint(uint64_t value, std::string* out) {
  for (; value >= 0x80; value >>= 7) *out += static_cast<char>(value | 0x80);
  *out += static_cast<char>(value);
}

void AppendScalar(FieldDescriptor::Type type, const Scalar& value, std::string* out) {
  switch (type) {
    case FieldDescriptor::TYPE_SINT32:
    case FieldDescriptor::TYPE_SINT64:
      return AppendVarint(ZigZag(value.bits), out);
    case FieldDescriptor::TYPE_FIXED32:
    case FieldDescriptor::TYPE_SFIXED32:
      return AppendLittleEndian(static_cast<uint32_t>(value.bits), out);
    case FieldDescriptor::TYPE_FIXED64:
    case FieldDescriptor::TYPE_SFIXED64:
      return AppendLittleEndian(value.bits, out);
    case FieldDescriptor::TYPE_FLOAT:
      return AppendLittleEndian(std::bit_cast<uint32_t>(static_cast<float>(value.real)), out);
    case FieldDescriptor::TYPE_DOUBLE:
      return AppendLittleEndian(std::bit_cast<uint64_t>(value.real), out);
    case FieldDescriptor::TYPE_STRING:
    case FieldDescriptor::TYPE_BYTES:
      AppendVarint(value.bytes.size(), out);
      *out += value.bytes;
      return;
    default:  // negative int32 and enum take ten bytes, as if they were int64
      return AppendVarint(value.bits, out);
  }
}

bool IsDefault(FieldDescriptor::Type type, const Scalar& value) {
  switch (type) {
    case FieldDescriptor::TYPE_FLOAT:
      return std::bit_cast<uint32_t>(static_cast<float>(value.real)) == 0;
    case FieldDescriptor::TYPE_DOUBLE:
      return std::bit_cast<uint64_t>(value.real) == 0;
    case FieldDescriptor::TYPE_STRING:
    case FieldDescriptor::TYPE_BYTES:
      return value.bytes.empty();
    default:
      return value.bits == 0;
  }
}

namespace {

// The seconds or nanoseconds of `seconds`.
uint64_t TakeFrom(double seconds, DrawnValue::Take take) {
  constexpr int64_t kGiga = 1'000'000'000;
  const double whole = std::floor(seconds);
  if (take == DrawnValue::Take::kSeconds) return static_cast<uint64_t>(whole);
  return static_cast<uint64_t>(std::min<int64_t>(std::llround((seconds - whole) * kGiga), kGiga - 1));
}

// A value from a reply, as the field has it.
void ParseKept(const FieldDescriptor& field, const Placeholder& placeholder, const Draw& draw,
               Scalar* value) {
  std::string word;
  if (!placeholder.Append(draw, &word)) return;
  const absl::Status status = ParseWord(field, word, value);
  if (!status.ok()) *draw.error = absl::InvalidArgumentError(Join(placeholder.text(), ": ", Message(status)));
}

}  // namespace

void DrawnValue::Append(const Draw& draw, std::string* out) const {
  const uint64_t request = draw.number;
  Scalar drawn;
  const Scalar* value = &drawn;
  const Placeholder* only = parts.size() == 1 && parts[0].placeholder ? &*parts[0].placeholder : nullptr;
  if (type == FieldDescriptor::TYPE_STRING || (type == FieldDescriptor::TYPE_BYTES && words.empty())) {
    for (const Part& part : parts) {
      if (part.placeholder) {
        part.placeholder->Append(draw, &drawn.bytes);
      } else {
        drawn.bytes += part.literal;
      }
    }
  } else if (!words.empty()) {
    value = &words[only->Pick(request)];
  } else if (only->kind() == Placeholder::Kind::kReply) {
    ParseKept(*field, *only, draw, &drawn);
  } else if (only->kind() == Placeholder::Kind::kInteger) {
    drawn.bits = static_cast<uint64_t>(only->Integer(request));
    // A request's number that outgrows a field of 32 bits begins anew at 0.
    const auto cpp_type = FieldDescriptor::TypeToCppType(type);
    if (only->is_index() && cpp_type == FieldDescriptor::CPPTYPE_INT32) drawn.bits &= 0x7fffffff;
    if (only->is_index() && cpp_type == FieldDescriptor::CPPTYPE_UINT32) drawn.bits &= 0xffffffff;
    drawn.real = only->Real(request);
  } else {
    drawn.real = only->Real(request);
    if (take != Take::kAll) drawn.bits = TakeFrom(drawn.real, take);
  }
  if (take == Take::kMessage) {
    *out += value->bytes;
    return;
  }
  if (omit_default && IsDefault(type, *value)) return;
  *out += tag;
  AppendScalar(type, *value, out);
}

std::string MessageProgram::Render(const Draw& draw) const {
  std::string out;
  RenderTo(draw, &out);
  return out;
}

void MessageProgram::RenderTo(const Draw& draw, std::string* out) const {
  for (const Step& step : steps_) {
    *out += step.bytes;
    if (step.drawn != nullptr) step.drawn->Append(draw, out);
    if (step.nested == nullptr) continue;
    const std::string body = step.nested->Render(draw);
    AppendVarint(body.size(), out);
    *out += body;
  }
}

bool MessageProgram::fixed() const { return steps_.empty() || (steps_.size() == 1 && steps_[0].fixed()); }

std::string* MessageProgram::Tail() {
  if (steps_.empty() || !steps_.back().fixed()) steps_.emplace_back();
  return &steps_.back().bytes;
}

void MessageProgram::AddBytes(std::string_view bytes) { *Tail() += bytes; }

void MessageProgram::AddScalar(FieldDescriptor::Type type, const Scalar& value) {
  AppendScalar(type, value, Tail());
}

void MessageProgram::AddDrawn(DrawnValue value) {
  Tail();
  steps_.back().drawn = std::make_unique<const DrawnValue>(std::move(value));
}

void MessageProgram::AddNested(std::string_view tag, MessageProgram body) {
  std::string* const tail = Tail();
  *tail += tag;
  if (body.fixed()) {
    const std::string_view bytes = body.empty() ? std::string_view() : body.steps_[0].bytes;
    AppendVarint(bytes.size(), tail);
    *tail += bytes;
    return;
  }
  steps_.back().nested = std::make_unique<const MessageProgram>(std::move(body));
}

void MessageProgram::Append(MessageProgram more) {
  if (steps_.empty()) {
    steps_ = std::move(more.steps_);
    return;
  }
  for (Step& step : more.steps_) {
    *Tail() += step.bytes;
    steps_.back().drawn = std::move(step.drawn);
    steps_.back().nested = std::move(step.nested);
  }
}

}  // namespace curtail::internal
