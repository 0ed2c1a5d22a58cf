// SPDX-License-Identifier: Apache-2.0
//
// model_file.h - a message in a file, which another process may replace at any time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "curtail/base/mutex.h"
#include "google/protobuf/message_lite.h"

namespace curtail::apps {

namespace internal {

// Which file it is, as far as its name does not say: it changes when the file is replaced.
struct FileStamp {
  uint64_t inode = 0, bytes = 0;
  int64_t changed_ns = 0;
  friend bool operator==(const FileStamp&, const FileStamp&) = default;
};
// Errors: FAILED_PRECONDITION, which says what to do, when there is none.
absl::StatusOr<FileStamp> StampOf(const std::string& path);
absl::Status ReadMessage(const std::string& path, google::protobuf::MessageLite* message);

}  // namespace internal

// The file is there whole or not at all. Errors: as OutputFile.
[[nodiscard]] absl::Status WriteMessage(const google::protobuf::MessageLite& message,
                                        const std::string& path);

// A ModelFile is thread-safe. `Check(model)` is a function in the namespace of the model. Get() looks at the file, and reads it when it has changed: for models that are read in a few
// milliseconds.
template <class Model>
class ModelFile {
 public:
  explicit ModelFile(std::string path) : path_(std::move(path)) {}

  // The model in the file now. Errors: FAILED_PRECONDITION (there is none yet), DATA_LOSS (it is no such model).
  absl::StatusOr<std::shared_ptr<const Model>> Get() {
    const absl::StatusOr<internal::FileStamp> stamp = internal::StampOf(path_);
    if (!stamp.ok()) return stamp.status();
    {
      const MutexLock lock(mu_);
      if (model_ != nullptr && stamp_ == *stamp) return model_;
    }
    auto model = std::make_shared<Model>();
    absl::Status read = internal::ReadMessage(path_, model.get());
    if (read.ok()) read = Check(*model);
    if (!read.ok()) return read;
    const MutexLock lock(mu_);
    // A file that was replaced since is read again by the next call.
    stamp_ = *stamp, model_ = std::move(model);
    return model_;
  }

 private:
  const std::string path_;
  Mutex mu_;
  internal::FileStamp stamp_ CURTAIL_GUARDED_BY(mu_);
  std::shared_ptr<const Model> model_ CURTAIL_GUARDED_BY(mu_);
};

}  // namespace curtail::apps
