// SPDX-License-Identifier: Apache-2.0
//
// reply_check.h - checks of what replies say: ".user.id == 7".
//
// A check is a path and, mostly, a comparison:
//
//   .user.id == 7                 == != < <= > >= with a value of JSON: 7, "red", true, null
//   .items[0].name contains "red" a string that has this part
//   .items.length >= 1            how many elements a list has
//   .token                        the field has a value: it is not absent, null, false, 0 or empty
//   . contains "welcome"          the whole body, over HTTP
//
// Fields of messages have their names of the .proto file or of JSON, enums the names of their
// values. An absent field is null.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "curtail/load/message/catalog.h"

namespace curtail {

// ReplyChecks are the checks of every OK reply of a run. Thread-compatible: const methods may run
// on many threads at once.
class ReplyChecks {
 public:
  // More checks than these are refused.
  static constexpr size_t kMost = 100;

  virtual ~ReplyChecks() = default;

  // Checks of replies by `method`, whose descriptors `catalog` keeps. Errors: INVALID_ARGUMENT with
  // the check: its form, a field that the reply does not have, a value of another type.
  [[nodiscard]] static absl::StatusOr<std::shared_ptr<const ReplyChecks>> OfMessages(
      std::vector<std::string> texts, Catalog catalog, const CatalogMethod& method);
  // Checks of bodies in JSON. Errors: INVALID_ARGUMENT with the check, its form.
  [[nodiscard]] static absl::StatusOr<std::shared_ptr<const ReplyChecks>> OfBodies(
      std::vector<std::string> texts);

  const std::vector<std::string>& texts() const { return texts_; }
  // Calls `failed` with the number of each check that `reply` fails, and what it found instead:
  // "it is 8". Takes some microseconds, and longer for large replies.
  virtual void Judge(std::string_view reply,
                     absl::FunctionRef<void(size_t check, std::string_view found)> failed) const = 0;

 protected:
  explicit ReplyChecks(std::vector<std::string> texts) : texts_(std::move(texts)) {}

 private:
  const std::vector<std::string> texts_;
};

// The checks in the text of a file: its lines, but for empty ones and remarks (#).
std::vector<std::string> ChecksOfLines(std::string_view text);

}  // namespace curtail
