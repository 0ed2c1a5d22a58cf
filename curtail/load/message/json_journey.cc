// SPDX-License-Identifier: Apache-2.0
#include "curtail/load/message/json_journey.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "curtail/base/mix.h"
#include "curtail/base/rng.h"
#include "curtail/base/strings.h"
#include "curtail/load/message/internal/json_message.h"
#include "curtail/load/message/internal/json_reader.h"
#include "curtail/load/message/internal/reply_fields.h"
#include "curtail/load/message/metadata_template.h"
#include "google/protobuf/descriptor.h"

namespace curtail {
namespace {

using internal::Draw;
using internal::JsonReader;
using internal::MessageProgram;
using internal::ReplyFields;

constexpr size_t kMostSteps = 100;
constexpr size_t kMaxName = 40;
constexpr int kMostMeans = 10;  // of an exponential pause

struct Step {
  std::string name;
  std::string method;
  MessageProgram request;
  std::optional<MetadataTemplate> metadata;
  Nanos pause{0};
  bool exponential = false;
  uint64_t seed = 0;
};

absl::Status At(const std::string& place, const absl::Status& why) {
  if (place.empty()) return why;
  return absl::Status(why.code(), Join(place, ": ", Message(why)));
}

bool IsName(std::string_view text) {
  return !text.empty() && text.size() <= kMaxName && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
  });
}

class JsonJourney final : public Journey {
 public:
  JsonJourney(std::string name, Catalog catalog, std::vector<Step> steps, ReplyFields replies)
      : catalog_(std::move(catalog)),
        name_(std::move(name)),
        steps_(std::move(steps)),
        replies_(std::move(replies)) {
    for (const Step& step : steps_) longest_pauses_ += step.pause * (step.exponential ? kMostMeans : 1);
  }

  std::string_view method() const override { return name_; }
  size_t steps() const override { return steps_.size(); }
  std::string_view StepName(size_t step) const override { return steps_[step].name; }
  std::string_view StepMethod(size_t step) const override { return steps_[step].method; }
  Nanos longest_pauses() const override { return longest_pauses_; }

  Nanos PauseBefore(size_t step, uint64_t index) const override {
    const Step& s = steps_[step];
    if (!s.exponential) return s.pause;
    const double drawn = Rng(Mix(s.seed, index)).Exponential(static_cast<double>(s.pause.count()));
    return std::min(Nanos(std::llround(drawn)), s.pause * kMostMeans);
  }

  absl::StatusOr<std::string> StepRequest(size_t step, uint64_t index,
                                          const KeptValues& kept) const override {
    absl::Status error;
    Draw draw(index);
    draw.kept = &kept;
    draw.error = &error;
    std::string message = steps_[step].request.Render(draw);
    if (!error.ok()) return error;
    return message;
  }

  absl::Status AddStepMetadata(size_t step, uint64_t index, const KeptValues& kept,
                               wire::Metadata* metadata) const override {
    if (!steps_[step].metadata) return absl::OkStatus();
    return steps_[step].metadata->AddTo(index, kept, metadata);
  }

  absl::Status Keep(size_t step, std::string_view reply, KeptValues* kept) const override {
    return replies_.Keep(step, reply, kept);
  }

 private:
  // Immutable after construction.
  const Catalog catalog_;  // has the types that the others refer to
  const std::string name_;
  const std::vector<Step> steps_;
  const ReplyFields replies_;
  Nanos longest_pauses_{0};
};

absl::StatusOr<MessageProgram> ReadRequest(const google::protobuf::Descriptor& type,
                                           const JourneyStep::Text& json, uint64_t seed,
                                           ReplyFields* replies) {
  JsonReader in(json.text, "data");
  internal::JsonMessageReader messages(type, seed, replies);
  absl::StatusOr<MessageProgram> program = messages.Read(&in);
  if (!program.ok()) return At(json.place, program.status());
  if (in.Peek() != JsonReader::Kind::kEnd)
    return At(json.place, in.Error(in.NextOffset(), "more text follows the request"));
  return program;
}

absl::StatusOr<Step> ReadStep(const JourneyStep& from, const CatalogMethod& method, uint64_t seed,
                              ReplyFields* replies) {
  Step step;
  step.name = from.name.text;
  step.method = method.path;
  step.pause = from.pause;
  step.exponential = from.exponential;
  step.seed = seed;
  absl::StatusOr<MessageProgram> request =
      ReadRequest(*method.descriptor->input_type(), from.json, seed, replies);
  if (!request.ok()) return request.status();
  step.request = *std::move(request);
  if (from.metadata.empty()) return step;
  std::vector<std::string> lines;
  for (const JourneyStep::Text& line : from.metadata) lines.push_back(line.text);
  absl::StatusOr<MetadataTemplate> metadata =
      MetadataTemplate::Parse(lines, seed, MetadataTemplate::Rules::kGrpc, replies);
  if (!metadata.ok()) return At(from.metadata.front().place, metadata.status());
  step.metadata = *std::move(metadata);
  return step;
}

absl::Status CheckName(const JourneyStep::Text& name, const std::vector<Step>& before) {
  if (!IsName(name.text)) {
    return At(name.place, absl::InvalidArgumentError(Join(
                              "'", name.text, "' is not a name; use up to 40 letters, digits, '-' and '_'")));
  }
  if (std::any_of(before.begin(), before.end(), [&](const Step& step) { return step.name == name.text; }))
    return At(name.place, absl::InvalidArgumentError(Join("two steps are called '", name.text, "'")));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::shared_ptr<const Journey>> MakeJsonJourney(std::string name, const Catalog& catalog,
                                                               const std::vector<JourneyStep>& steps,
                                                               uint64_t seed) {
  if (steps.empty() || steps.size() > kMostSteps)
    return absl::InvalidArgumentError(Join(name, ": a journey has from 1 to ", kMostSteps, " steps"));
  ReplyFields replies;
  std::vector<Step> made;
  for (const JourneyStep& from : steps) {
    if (absl::Status status = CheckName(from.name, made); !status.ok()) return status;
    const absl::StatusOr<CatalogMethod> method = catalog.FindMethod(from.method.text);
    if (!method.ok()) return At(from.method.place, method.status());
    absl::StatusOr<Step> step = ReadStep(from, *method, Mix(seed, made.size()), &replies);
    if (!step.ok()) return step.status();
    made.push_back(*std::move(step));
    replies.AddStep(from.name.text, *method->descriptor->output_type());
  }
  return std::make_shared<const JsonJourney>(std::move(name), catalog, std::move(made), std::move(replies));
}

}  // namespace curtail
