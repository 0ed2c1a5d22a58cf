// SPDX-License-Identifier: Apache-2.0
#include "apps/kit/output_file.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "curtail/base/internal/sync_folder.h"
#include "curtail/base/strings.h"

namespace curtail::apps {
namespace {

std::string NameWhileWritten(const std::string& path) {
  std::error_code unknown;
  const auto type = std::filesystem::status(path, unknown).type();
  const bool replace =
      type == std::filesystem::file_type::not_found || type == std::filesystem::file_type::regular;
  return replace ? Join(path, ".part-", getpid()) : path;
}

}  // namespace

OutputFile::OutputFile(std::string path)
    : path_(std::move(path)), written_(NameWhileWritten(path_)), file_(std::fopen(written_.c_str(), "wbe")) {
  if (file_ == nullptr) error_ = errno;
}

OutputFile::~OutputFile() {
  if (file_ == nullptr) return;
  std::fclose(file_);
  if (written_ != path_) std::remove(written_.c_str());
}

absl::Status OutputFile::Write(std::string_view bytes) {
  if (error_ != 0 || std::fwrite(bytes.data(), 1, bytes.size(), file_) != bytes.size()) return Failed();
  return absl::OkStatus();
}

absl::Status OutputFile::Commit() {
  const bool replace = written_ != path_;
  if (error_ != 0 || std::fflush(file_) != 0 || (replace && fsync(fileno(file_)) != 0)) return Failed();
  absl::Status status = std::fclose(std::exchange(file_, nullptr)) == 0 ? absl::OkStatus() : Failed();
  if (!replace) return status;
  if (status.ok() && std::rename(written_.c_str(), path_.c_str()) != 0) status = Failed();
  if (!status.ok()) std::remove(written_.c_str());
  return status.ok() && !curtail::internal::SyncFolderOf(path_) ? Failed() : status;
}

absl::Status OutputFile::Failed() {
  if (error_ == 0) error_ = errno;
  return absl::Status(absl::ErrnoToStatusCode(error_),
                      Join(path_, ": cannot be written: ", std::strerror(error_)));
}

}  // namespace curtail::apps
