// SPDX-License-Identifier: Apache-2.0
#include "apps/kit/data/model_file.h"

#include <sys/stat.h>

#include <fstream>

#include "apps/kit/output_file.h"
#include "curtail/base/strings.h"

namespace curtail::apps {
namespace internal {

absl::StatusOr<FileStamp> StampOf(const std::string& path) {
  struct stat info = {};
  if (stat(path.c_str(), &info) != 0) {
    return absl::FailedPreconditionError(
        "nothing was learned yet; the command `train` of this application does that");
  }
  return FileStamp{.inode = info.st_ino,
                   .bytes = static_cast<uint64_t>(info.st_size),
                   .changed_ns = info.st_mtim.tv_sec * 1'000'000'000 + info.st_mtim.tv_nsec};
}

absl::Status ReadMessage(const std::string& path, google::protobuf::MessageLite* message) {
  std::ifstream file(path, std::ios::binary);
  if (file && message->ParseFromIstream(&file)) return absl::OkStatus();
  return absl::DataLossError(Join(path, " is not a model: run `train` again"));
}

}  // namespace internal

absl::Status WriteMessage(const google::protobuf::MessageLite& message, const std::string& path) {
  OutputFile file(path);
  absl::Status status = file.Write(message.SerializeAsString());
  return status.ok() ? file.Commit() : status;
}

}  // namespace curtail::apps
