// SPDX-License-Identifier: Apache-2.0
#include "variant.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "compose_service.h"

namespace curtail::study {
namespace {

constexpr std::string_view kStdPrefix = "std-";
constexpr std::string_view kCurtailPrefix = "curtail-";

}  // namespace

absl::StatusOr<Variant> Variant::Parse(std::string_view text) {
  Variant variant;
  std::string_view config = text;
  if (text.starts_with(kStdPrefix)) {
    config.remove_prefix(kStdPrefix.size());
  } else if (text.starts_with(kCurtailPrefix)) {
    variant.async = AsyncKind::kCurtail;
    config.remove_prefix(kCurtailPrefix.size());
  } else {
    return absl::InvalidArgumentError(
        absl::StrCat(std::string(text), ": write std-CONFIG or curtail-CONFIG, as in std-SDB1-64"));
  }
  absl::StatusOr<Config> parsed = Config::Parse(config);
  if (!parsed.ok()) return parsed.status();
  variant.config = *parsed;
  if (parsed->model.waiting == Waiting::kAsync) {
    return absl::InvalidArgumentError(
        absl::StrCat(std::string(text), ": the handler waits, which asynchronous models have no thread for"));
  }
  if (variant.async == AsyncKind::kStd && variant.fibers()) {
    return absl::InvalidArgumentError(
        absl::StrCat(std::string(text), ": std::future::get() would hold up all fibers of its thread"));
  }
  return variant;
}

std::string Variant::name() const {
  const std::string_view prefix = async == AsyncKind::kStd ? kStdPrefix : kCurtailPrefix;
  return std::string(prefix) + config.ToString();
}

int Variant::MaxThreads() const {
  const bool dispatch = config.model.execution == Execution::kDispatch;
  const int runners = dispatch ? config.workers : config.network;
  const bool parked = async == AsyncKind::kCurtail && !fibers();
  return config.network + config.workers + (parked ? kParallelCalls * runners : 0);
}

absl::StatusOr<std::vector<Variant>> ParseVariants(std::string_view text) {
  std::vector<Variant> variants;
  for (const std::string& word : std::vector<std::string>(absl::StrSplit(std::string(text), ','))) {
    absl::StatusOr<Variant> variant = Variant::Parse(word);
    if (!variant.ok()) return variant.status();
    variants.push_back(*std::move(variant));
  }
  return variants;
}

}  // namespace curtail::study
