// SPDX-License-Identifier: Apache-2.0
#include "curtail/exec/config.h"

#include <charconv>
#include <vector>

#include "absl/status/status.h"
#include "curtail/base/strings.h"

namespace curtail {
namespace {

constexpr std::string_view kHint =
    "; write auto, or MODEL network[-workers[-response]], for example SIB1, SIP1 or SDB1-16";

absl::Status Bad(std::string_view text, std::string_view why) {
  return absl::InvalidArgumentError(Join("config \"", text, "\": ", why, kHint));
}

std::string InCapitals(std::string_view text) {
  std::string capitals(text);
  for (char& c : capitals) c = static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
  return capitals;
}

absl::StatusOr<Model> ParseModel(std::string_view text) {
  Model model;
  if (text.empty()) return absl::InvalidArgumentError(Join("the config is empty", kHint));
  if (text.size() < 3) return Bad(text, "too short");
  switch (text[0]) {
    case 'S':
      model.waiting = Waiting::kSync;
      break;
    case 'A':
      model.waiting = Waiting::kAsync;
      break;
    case 'F':
      model.waiting = Waiting::kFiber;
      break;
    default:
      return Bad(text, "the first letter is S (sync), A (async) or F (fiber)");
  }
  switch (text[1]) {
    case 'I':
      model.execution = Execution::kInline;
      break;
    case 'D':
      model.execution = Execution::kDispatch;
      break;
    default:
      return Bad(text, "the second letter is I (in-line) or D (dispatch)");
  }
  switch (text[2]) {
    case 'B':
      model.reception = Reception::kBlock;
      break;
    case 'P':
      model.reception = Reception::kPoll;
      break;
    default:
      return Bad(text, "the third letter is B (block) or P (poll)");
  }
  return model;
}

// How many pools a model has: network, then workers if it dispatches, then response threads if it is async.
int PoolCount(const Model& model) {
  return 1 + (model.execution == Execution::kDispatch) + (model.waiting == Waiting::kAsync);
}

// "SDB needs 2 pool sizes, as in SDB1-16".
std::string WrongPools(std::string_view model, int needed) {
  constexpr std::string_view kSizes[] = {"1", "1-16", "1-16-2"};
  return Join(model, " needs ", needed, needed == 1 ? " pool size" : " pool sizes", ", as in ", model,
              kSizes[needed - 1]);
}

}  // namespace

absl::StatusOr<Config> Config::Parse(std::string_view text) {
  if (text == "auto") return Auto();
  if (const std::string capitals = InCapitals(text); capitals != text && Parse(capitals).ok())
    return absl::InvalidArgumentError(Join("config \"", text, "\": write configs in capitals: ", capitals));
  absl::StatusOr<Model> model = ParseModel(text);
  if (!model.ok()) return model.status();
  Config config{.model = *model};
  std::vector<std::string_view> sizes;
  for (std::string_view rest = text.substr(3);;) {
    const size_t dash = rest.find('-');
    sizes.push_back(rest.substr(0, dash));
    if (dash == std::string_view::npos) break;
    rest.remove_prefix(dash + 1);
  }
  if (text.size() == 3 || static_cast<int>(sizes.size()) != PoolCount(*model)) {
    return Bad(text, WrongPools(text.substr(0, 3), PoolCount(*model)));
  }
  int parsed[3] = {0, 0, 0};
  for (size_t i = 0; i < sizes.size(); ++i) {
    const char* const end = sizes[i].data() + sizes[i].size();
    const auto [stop, error] = std::from_chars(sizes[i].data(), end, parsed[i]);
    if (error != std::errc() || stop != end || parsed[i] < 1 || parsed[i] > kMaxPoolSize) {
      return Bad(text, Join("a pool has 1 to ", kMaxPoolSize, " threads, not \"", sizes[i], "\""));
    }
  }
  size_t next = 0;
  config.network = parsed[next++];
  if (model->execution == Execution::kDispatch) config.workers = parsed[next++];
  if (model->waiting == Waiting::kAsync) config.response = parsed[next++];
  return config;
}

std::string Config::ToString() const {
  if (stand_ins) return "auto";
  std::string text;
  text += model.waiting == Waiting::kSync ? 'S' : model.waiting == Waiting::kAsync ? 'A' : 'F';
  text += model.execution == Execution::kInline ? 'I' : 'D';
  text += model.reception == Reception::kBlock ? 'B' : 'P';
  text += Join(network);
  if (model.execution == Execution::kDispatch) text += Join("-", workers);
  if (model.waiting == Waiting::kAsync) text += Join("-", response);
  return text;
}

}  // namespace curtail
