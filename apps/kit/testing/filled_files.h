// SPDX-License-Identifier: Apache-2.0
//
// filled_files.h - the data of a filled application, for the tests of a program that each start with it.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "apps/kit/testing/start_app.h"
#include "curtail/base/clock.h"
#include "curtail/base/temp_dir_testing.h"

namespace curtail::apps {

// Fills an application once and copies its files for each test. Not thread-safe.
class FilledFiles {
 public:
  // How the application is started with its data in a folder.
  using Form = std::function<Deployed(const std::string& folder)>;
  // Fills the application whose front end has the address `target`. Called twice: the second time finds all.
  using Fill = std::function<void(const std::string& target, const std::string& folder)>;

  FilledFiles(std::string topology, Form form, Fill fill)
      : topology_(std::move(topology)), form_(std::move(form)), fill_(std::move(fill)) {}

  // Copies the files to `folder`, which does not exist yet.
  void CopyTo(const std::string& folder);

 private:
  struct Files {
    TempDir dir;
    Deadline until =
        Deadline::In(std::chrono::minutes(8));  // sessions in them end after a quarter of an hour
  };

  const std::string topology_;
  const Form form_;
  const Fill fill_;
  std::unique_ptr<Files> files_;
};

}  // namespace curtail::apps
