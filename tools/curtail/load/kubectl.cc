// SPDX-License-Identifier: Apache-2.0
#include "tools/curtail/load/kubectl.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "curtail/deploy/find_program.h"

namespace curtail::tool {
namespace {

// Between looks at the signal that ends this command.
constexpr Nanos kLook = std::chrono::milliseconds(200);
constexpr size_t kMaxWords = 2000;  // bytes of what kubectl says of an error

// True for a line of kubectl's own log: "E1130 06:11:36.813483 31141 memcache.go:265] ...".
bool IsLogLine(std::string_view line) {
  return line.size() > 5 && std::string_view("EWIF").find(line[0]) != std::string_view::npos &&
         std::all_of(line.begin() + 1, line.begin() + 5,
                     [](unsigned char c) { return absl::ascii_isdigit(c); }) &&
         line[5] == ' ';
}

}  // namespace

std::string KubectlSaid(std::string_view all) {
  std::vector<std::string> lines = absl::StrSplit(absl::StripAsciiWhitespace(std::string(all)), '\n');
  const std::string last = lines.back();
  std::erase_if(lines, IsLogLine);  // they repeat what the last line says
  std::string text = lines.empty() ? last : absl::StrJoin(lines, "\n");
  if (text.size() > kMaxWords) text = text.substr(text.size() - kMaxWords);
  text = std::string(absl::StripPrefix(absl::StripPrefix(text, "error: "), "Error from server "));
  if (absl::StrContains(text, "refused")) absl::StrAppend(&text, "; is a cluster set in kubectl config?");
  return text;
}

ScratchFile::ScratchFile(std::string_view content) {
  std::error_code error;
  std::string pattern = (std::filesystem::temp_directory_path(error) / "curtail-kubectl-XXXXXX").string();
  const int fd = mkstemp(pattern.data());
  if (fd < 0) return;
  close(fd);
  path_ = std::move(pattern);
  std::ofstream(path_, std::ios::binary) << content;
}

ScratchFile::~ScratchFile() {
  if (!path_.empty()) (void)unlink(path_.c_str());
}

std::string ScratchFile::Content() const {
  std::ifstream in(path_, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

absl::StatusOr<Kubectl> Kubectl::Find(const std::string& name_space) {
  const absl::StatusOr<std::string> program = deploy::FindProgram("kubectl");
  if (program.ok()) return Kubectl(*program, name_space);
  return absl::FailedPreconditionError(
      "kubectl is not in PATH: install it, as curtail reaches the cluster by it");
}

std::string Kubectl::Where() const {
  return name_space_.empty() ? "" : absl::StrCat(" in the namespace ", name_space_);
}

absl::StatusOr<std::unique_ptr<deploy::Process>> Kubectl::Start(std::vector<std::string> words) const {
  deploy::ProcessOptions options{.name = "kubectl", .argv = {program_}};
  if (!name_space_.empty()) options.argv.insert(options.argv.end(), {"--namespace", name_space_});
  options.argv.insert(options.argv.end(), words.begin(), words.end());
  return deploy::Process::Spawn(std::move(options));
}

absl::StatusOr<std::string> Kubectl::Run(std::vector<std::string> words, Nanos timeout,
                                         const std::atomic<bool>* stop) const {
  const ScratchFile errors;
  deploy::ProcessOptions options{.name = "kubectl", .argv = {program_}, .log_path = errors.path()};
  if (!name_space_.empty()) options.argv.insert(options.argv.end(), {"--namespace", name_space_});
  options.argv.insert(options.argv.end(), words.begin(), words.end());
  const absl::StatusOr<std::unique_ptr<deploy::Process>> started = deploy::Process::Spawn(std::move(options));
  if (!started.ok()) return started.status();
  deploy::Process& process = **started;
  const Deadline deadline = Deadline::In(timeout);
  while (true) {
    absl::StatusOr<std::string> output = process.ReadToEnd(std::min(deadline, Deadline::In(kLook)));
    if (output.ok()) {
      if (process.Terminate(Nanos::zero()) == 0) return output;
      const std::string said = KubectlSaid(errors.Content());
      const absl::StatusCode code = absl::StrContains(said, "(NotFound)")
                                        ? absl::StatusCode::kNotFound
                                        : absl::StatusCode::kFailedPrecondition;
      return absl::Status(code, absl::StrCat("kubectl: ", said.empty() ? process.HowItEnded() : said));
    }
    if (stop != nullptr && *stop) return absl::CancelledError("interrupted");
    if (deadline.Expired()) {
      return absl::DeadlineExceededError(
          absl::StrCat("kubectl ", absl::StrJoin(words, " "), ": the cluster did not answer in time"));
    }
  }
}

}  // namespace curtail::tool
