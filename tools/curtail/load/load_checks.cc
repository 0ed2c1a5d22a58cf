// SPDX-License-Identifier: Apache-2.0
#include "tools/curtail/load/load_checks.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "curtail/base/read_file.h"
#include "curtail/base/strings.h"
#include "curtail/load/message/journey.h"
#include "curtail/load/message/reply_check.h"

namespace curtail::tool {
namespace {

constexpr size_t kMaxFile = 1u << 20;

absl::Status OfFlag(const absl::Status& why) {
  return absl::Status(why.code(), absl::StrCat("--check: ", why.message()));
}

absl::StatusOr<std::vector<std::string>> ReadTexts(const LoadFlags& flags) {
  std::vector<std::string> texts;
  for (const std::string& check : flags.checks) {
    if (!check.starts_with('@')) {
      texts.push_back(check);
      continue;
    }
    const std::string name = check.substr(1);
    const absl::StatusOr<std::string> file = ReadWholeFile(name, kMaxFile);
    if (!file.ok()) return file.status();
    const std::vector<std::string> lines = ChecksOfLines(*file);
    if (lines.empty()) return absl::InvalidArgumentError(absl::StrCat(name, " has no check"));
    texts.insert(texts.end(), lines.begin(), lines.end());
  }
  return texts;
}

absl::StatusOr<std::shared_ptr<const ReplyChecks>> MakeChecks(const LoadFlags& flags,
                                                              const LoadTargets& targets,
                                                              const Workload& workload) {
  absl::StatusOr<std::vector<std::string>> texts = ReadTexts(flags);
  if (!texts.ok()) return OfFlag(texts.status());
  absl::StatusOr<std::shared_ptr<const ReplyChecks>> checks = absl::UnknownError("");
  if (targets.http) {
    checks = ReplyChecks::OfBodies(*std::move(texts));
  } else {
    absl::StatusOr<Catalog> catalog = MakeCatalog(flags, targets);
    if (!catalog.ok()) return catalog.status();
    const Journey* const journey = workload.journey();
    const absl::StatusOr<CatalogMethod> method = catalog->FindMethod(
        journey != nullptr ? journey->StepMethod(journey->steps() - 1) : workload.MethodOf(0),
        flags.stream > 0);
    if (!method.ok()) return method.status();
    checks = ReplyChecks::OfMessages(*std::move(texts), *catalog, *method);
  }
  if (!checks.ok()) return OfFlag(checks.status());
  return checks;
}

}  // namespace

bool NamesCheckFile(const LoadFlags& flags) {
  return std::any_of(flags.checks.begin(), flags.checks.end(),
                     [](const std::string& check) { return check.starts_with('@'); });
}

absl::Status SetChecks(const LoadFlags& flags, const LoadTargets& targets, const Workload& workload,
                       RunOptions* options) {
  if (flags.checks.empty()) return absl::OkStatus();
  if (!targets.application.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--check: ", targets.application,
        " judges its own replies, as the report shows; for checks of yours name a --method in place of it"));
  }
  if (options->stream && options->stream->kind == StreamOptions::Kind::kReplies)
    return absl::InvalidArgumentError("--check: a stream of replies has no one reply; leave --check out");
  absl::StatusOr<std::shared_ptr<const ReplyChecks>> checks = MakeChecks(flags, targets, workload);
  if (!checks.ok()) return checks.status();
  options->checks = *std::move(checks);
  return absl::OkStatus();
}

std::string DebugChecks(const RunOptions& options, const std::string& reply) {
  if (options.checks == nullptr) return {};
  std::vector<std::string> lines;
  for (const std::string& text : options.checks->texts()) lines.push_back(absl::StrCat("held    ", text));
  options.checks->Judge(reply, [&](size_t check, std::string_view found) {
    lines[check] = Join("FAILED  ", options.checks->texts()[check], ": ", found);
  });
  std::string text;
  for (const std::string& line : lines) absl::StrAppend(&text, line, "\n");
  return text;
}

}  // namespace curtail::tool
