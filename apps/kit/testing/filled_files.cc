// SPDX-License-Identifier: Apache-2.0
#include "apps/kit/testing/filled_files.h"

#include <gtest/gtest.h>

#include <filesystem>

namespace curtail::apps {

void FilledFiles::CopyTo(const std::string& folder) {
  if (!files_ || files_->until.Expired()) {
    files_ = std::make_unique<Files>();
    const std::string filled = files_->dir.File("data");
    const auto app = StartApp(topology_, form_(filled));
    for (int turn = 0; turn < 2; ++turn) fill_(app->AddressOf("front-end"), filled);
    const absl::Status ended = app->Stop();
    EXPECT_TRUE(ended.ok()) << ended;
  }
  std::filesystem::copy(files_->dir.File("data"), folder, std::filesystem::copy_options::recursive);
}

}  // namespace curtail::apps
