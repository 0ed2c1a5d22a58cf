// SPDX-License-Identifier: Apache-2.0
#include "bench/common/program.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <filesystem>
#include <iostream>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "bench/common/report.h"
#include "bench/common/scratch.h"
#include "curtail/base/internal/flag_error.h"
#include "curtail/base/strings.h"
#include "curtail/term/interrupt.h"
#include "tools/docs/program_docs.h"

namespace curtail::bench {
namespace {

absl::Status Write(const std::string& path, const std::string& text) {
  if (path.empty() || WriteFile(path, text)) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("cannot write ", path));
}

// A file that cannot be written is an error now, and not after hours of measuring.
absl::Status CheckWritable(const std::string& path) {
  if (path.empty()) return absl::OkStatus();
  std::error_code unknown;
  const bool is_folder = std::filesystem::is_directory(path, unknown);
  std::filesystem::path written = path;  // a device, or the folder of a file, which is replaced
  if (!std::filesystem::is_other(path, unknown)) written = written.parent_path();
  if (!is_folder && access(written.empty() ? "." : written.c_str(), W_OK) == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("cannot write ", path, ": ", std::generic_category().message(is_folder ? EISDIR : errno)));
}

// Says what is wrong with the command line as curtail's other programs do.
absl::Status Refusal(const CLI::App& app, const CLI::ParseError& error) {
  const bool unknown = dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr;
  const std::string what =
      unknown ? tool::UnknownWord(app.remaining(), {&app}) : curtail::internal::PlainFlagError(error.what());
  return absl::InvalidArgumentError(absl::StrCat(what, "\nhint: see ", app.get_name(), " --help"));
}

}  // namespace

void AddCommonFlags(CLI::App& app, CommonFlags* flags, const CommonTexts& texts) {
  app.add_option("--rounds", flags->rounds, "Times that each cell is measured; the report has medians")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  flags->seeded = *texts.seed != '\0';
  if (flags->seeded) app.add_option("--seed", flags->seed, texts.seed)->capture_default_str();
  if (*texts.quick != '\0') app.add_flag("--quick", flags->quick, texts.quick);
  app.add_option("--json", flags->json, "Write the results here, for machines");
  if (*texts.markdown != '\0') app.add_option("--markdown", flags->markdown, texts.markdown);
  app.add_flag("--quiet", flags->quiet, "No progress");
}

std::optional<int> ParseFlags(CLI::App& app, int argc, char** argv, CommonFlags* flags) {
  flags->command = absl::StrJoin(argv, argv + argc, " ");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help
    return Fail(app.get_name(), Refusal(app, error));
  }
  for (const std::string& path : {flags->json, flags->markdown}) {
    if (const absl::Status status = CheckWritable(path); !status.ok()) return Fail(app.get_name(), status);
  }
  return std::nullopt;
}

int Fail(const std::string& program, const absl::Status& status) {
  std::cerr << program << ": " << Message(status) << "\n";
  switch (status.code()) {
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kNotFound:
      return kBadConfig;
    case absl::StatusCode::kCancelled:
      return kInterrupted;
    default:
      return kFailed;
  }
}

Session::Session(const CommonFlags& flags) : flags_(flags), stop_(CatchInterrupts()) {
  console_.set_quiet(flags.quiet);
}

int Session::Finish(const std::string& program, const Report& report, const absl::Status& status, int code) {
  Progress({});
  console_.Print(report.ToText());
  absl::Status written = Write(flags_.json, report.ToJson());
  written.Update(Write(flags_.markdown, report.ToMarkdown()));
  if (!written.ok()) return Fail(program, written);
  if (stop_) return kInterrupted;
  return status.ok() ? code : Fail(program, status);
}

}  // namespace curtail::bench
