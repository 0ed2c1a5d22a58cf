// SPDX-License-Identifier: Apache-2.0
#include "tools/curtail/load/journey_file.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "curtail/base/internal/closest.h"
#include "curtail/base/read_file.h"
#include "curtail/deploy/internal/yaml_text.h"
#include "tools/curtail/term/flags.h"

namespace curtail::tool {
namespace {

using deploy::Entries;
using deploy::Fail;

constexpr size_t kMaxBytes = 2u << 20;  // to be read; ParseJourney() takes less

class JourneyReader {
 public:
  explicit JourneyReader(std::string_view origin) : origin_(origin) {}

  std::vector<JourneyStep> Read(const YAML::Node& root) const {
    const YAML::Node steps = root.IsMap() ? root["steps"] : YAML::Node(YAML::NodeType::Undefined);
    if (!steps.IsDefined() || root.size() != 1)
      Fail(root, "a journey has one key, steps: the list of its steps");
    if (!steps.IsSequence() || steps.size() == 0) Fail(steps, "steps must be a list of at least one step");
    std::vector<JourneyStep> read;
    for (const YAML::Node& step : steps) read.push_back(ReadStep(step, read.empty()));
    return read;
  }

 private:
  JourneyStep ReadStep(const YAML::Node& node, bool first) const {
    if (!node.IsMap()) Fail(node, "a step is written as name: NAME and method: package.Service/Method");
    JourneyStep step;
    for (const auto& [key, value] : Entries(node)) ReadKey(deploy::Text(key, "a key"), key, value, &step);
    for (const auto& [text, key] :
         {std::pair(&step.name.text, "name"), std::pair(&step.method.text, "method")}) {
      if (text->empty()) Fail(node, absl::StrCat("a step needs a ", key));
    }
    if (first && step.pause > Nanos::zero())
      Fail(node["pause"], "the first step has no pause: it begins when its journey does");
    return step;
  }

  void ReadKey(const std::string& key, const YAML::Node& at, const YAML::Node& value,
               JourneyStep* step) const {
    if (key == "name") {
      step->name = Placed(value, key);
    } else if (key == "method") {
      step->method = Placed(value, key);
    } else if (key == "data") {
      if (!value.IsScalar()) Fail(value, "data must be JSON in quotes: data: '{\"user\": 1}'");
      step->json = Placed(value, key);
    } else if (key == "metadata") {
      ReadMetadata(value, step);
    } else if (key == "pause") {
      ReadPause(value, step);
    } else {
      Fail(at,
           absl::StrCat("a step has no key '", key, "'",
                        curtail::internal::NamesHint(key, {"name", "method", "data", "metadata", "pause"})));
    }
  }

  void ReadMetadata(const YAML::Node& value, JourneyStep* step) const {
    if (!value.IsMap()) Fail(value, "metadata must be KEY: VALUE lines");
    for (const auto& [key, text] : Entries(value)) {
      step->metadata.push_back(Placed(text, "a value of metadata"));
      std::string& line = step->metadata.back().text;
      line = absl::StrCat(deploy::Text(key, "a key of metadata"), ": ", line);
    }
  }

  static void ReadPause(const YAML::Node& value, JourneyStep* step) {
    const std::string text = deploy::Text(value, "pause");
    absl::string_view length = text;
    step->exponential = absl::ConsumePrefix(&length, "exponential ");
    const absl::StatusOr<Nanos> pause = ParseDuration({length.data(), length.size()});
    if (!pause.ok()) {
      Fail(value, absl::StrCat("'", text, "' is not a pause; write pause: 50ms or pause: exponential 50ms"));
    }
    step->pause = *pause;
  }

  JourneyStep::Text Placed(const YAML::Node& node, std::string_view what) const {
    std::string text = deploy::Text(node, what);
    return {std::move(text), absl::StrCat(origin_, ":", node.Mark().line + 1)};
  }

  const std::string origin_;
};

}  // namespace

absl::StatusOr<std::vector<JourneyStep>> ParseJourney(std::string_view yaml, std::string_view origin) {
  std::vector<JourneyStep> steps;
  absl::Status read = deploy::ReadYaml(yaml, origin, [&](const YAML::Node& root) {
    steps = JourneyReader(origin).Read(root);
    return absl::OkStatus();
  });
  if (!read.ok()) return read;
  return steps;
}

absl::Status CheckJourney(const LoadFlags& flags) {
  if (flags.journey.empty()) return absl::OkStatus();
  if (!flags.data.empty() || !flags.data_hex.empty() || !flags.data_binary.empty() || flags.stream > 0 ||
      flags.pick != LoadFlags().pick) {
    return absl::InvalidArgumentError(
        "--journey: its steps say what to send; leave --data, --stream and --pick out");
  }
  if (!flags.trace_to.empty()) {
    return absl::InvalidArgumentError("--trace-to: a trace is of one call; leave --journey out");
  }
  return absl::OkStatus();
}

absl::StatusOr<WorkloadMaker> MakeJourneys(const LoadFlags& flags, const LoadTargets& targets) {
  if (targets.http || !targets.application.empty()) {
    return absl::InvalidArgumentError(
        "--journey: its steps are calls of gRPC; give HOST:PORT, or APP/SERVICE of what is up");
  }
  const absl::StatusOr<std::string> text = ReadWholeFile(flags.journey, kMaxBytes);
  if (!text.ok())
    return absl::Status(text.status().code(), absl::StrCat("--journey: ", text.status().message()));
  absl::StatusOr<std::vector<JourneyStep>> steps = ParseJourney(*text, flags.journey);
  if (!steps.ok()) return steps.status();
  absl::StatusOr<Catalog> catalog = MakeCatalog(flags, targets);
  if (!catalog.ok()) return catalog.status();
  return [name = flags.journey, catalog = *std::move(catalog),
          steps = *std::move(steps)](uint64_t seed) -> absl::StatusOr<std::shared_ptr<const Workload>> {
    return MakeJsonJourney(name, catalog, steps, seed);
  };
}

}  // namespace curtail::tool
