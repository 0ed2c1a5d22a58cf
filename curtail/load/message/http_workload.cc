// SPDX-License-Identifier: Apache-2.0
#include "curtail/load/message/http_workload.h"

#include <algorithm>
#include <utility>

#include "curtail/base/mix.h"
#include "curtail/base/strings.h"
#include "curtail/load/message/choice.h"
#include "curtail/load/message/internal/text_template.h"

namespace curtail {
namespace {

using internal::TextTemplate;

class HttpWorkload final : public Workload {
 public:
  HttpWorkload(std::string name, std::vector<TextTemplate> bodies, ItemChoice choice)
      : name_(std::move(name)),
        bodies_(std::move(bodies)),
        choice_(std::move(choice)),
        repeats_(
            choice_.spec() == "in-turn" &&
            std::all_of(bodies_.begin(), bodies_.end(), [](const TextTemplate& t) { return t.fixed(); })) {}

  std::string_view method() const override { return name_; }
  uint64_t distinct() const override { return repeats_ ? bodies_.size() : 0; }
  std::string Request(uint64_t index) const override {
    std::string body;
    bodies_[choice_.Index(index)].Append(index, &body);
    return body;
  }

 private:
  // Immutable after construction.
  const std::string name_;
  const std::vector<TextTemplate> bodies_;
  const ItemChoice choice_;
  const bool repeats_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Workload>> MakeHttpWorkload(const HttpSource& source, uint64_t seed) {
  std::vector<TextTemplate> bodies;
  for (const std::string& text : source.bodies) {
    if (!source.drawn) {
      bodies.push_back(TextTemplate::Literal(text));
      continue;
    }
    // Each body draws for itself, and for no line of the head.
    absl::StatusOr<TextTemplate> body = TextTemplate::Parse(text, Mix(seed, bodies.size()));
    if (!body.ok()) {
      return absl::InvalidArgumentError(Join("body ", bodies.size() + 1, ": ", Message(body.status())));
    }
    bodies.push_back(*std::move(body));
  }
  if (bodies.empty()) bodies.push_back(TextTemplate::Literal(""));
  absl::StatusOr<ItemChoice> choice = ParseItemChoice(source.choice, bodies.size(), seed);
  if (!choice.ok()) return choice.status();
  return std::make_unique<HttpWorkload>(source.name, std::move(bodies), *std::move(choice));
}

std::vector<std::string> BodiesOfLines(std::string_view text) {
  std::vector<std::string> bodies;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.find_first_not_of(" \t") != line.npos) bodies.emplace_back(line);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return bodies;
}

}  // namespace curtail
