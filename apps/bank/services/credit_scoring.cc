// SPDX-License-Identifier: Apache-2.0
//
// Credit scoring: the probability that a loan is repaid, by a model that it reads when it starts. Keeps nothing.
#include <memory>
#include <span>
#include <string>

#include "apps/bank/common/credit.h"
#include "apps/bank/data.h"
#include "apps/kit/line_reader.h"
#include "curtail/base/embedded_file.h"

namespace curtail::bank {

std::span<const EmbeddedFile> CreditModelFiles();  // made by CMake of credit.model

struct CreditScoringService final : CreditScoring::CoroutineService {
  explicit CreditScoringService(CreditModel m) : model(std::move(m)) {}

  Coroutine Score(Context&, const CreditFeatures& request, CreditScore* reply) override {
    co_return ScoreCredit(model, request, reply);
  }

  std::vector<DeclaredPath> Paths() const override { return {{"Score", {}}}; }

  const CreditModel model;
};

absl::StatusOr<CreditModel> LoadCreditModel(const std::string& path) {
  if (path == "builtin") return ParseCreditModel(std::string(CreditModelFiles()[0].bytes));
  auto reader = apps::LineReader::Open(path);
  if (!reader.ok()) return reader.status();
  std::string text;
  std::string_view line;
  absl::StatusOr<bool> more = false;
  while ((more = (*reader)->Next(&line)).ok() && *more) text += Join(line, "\n");
  if (!more.ok()) return more.status();
  absl::StatusOr<CreditModel> model = ParseCreditModel(text);
  if (!model.ok()) return absl::Status(model.status().code(), Join(path, ": ", Message(model.status())));
  return model;
}

HostedService HostedCreditScoring() {
  auto file = std::make_shared<std::string>("builtin");
  return {.name = "credit-scoring",
          .flags =
              [file](Flags& flags) {
                flags.Add("--model", file.get(), "File that bank train wrote; builtin: of 1,000 loans");
              },
          .make = [file](Env&) -> MadeService {
            absl::StatusOr<CreditModel> model = LoadCreditModel(*file);
            if (!model.ok()) return model.status();
            return std::make_unique<CreditScoringService>(*std::move(model));
          }};
}

}  // namespace curtail::bank
