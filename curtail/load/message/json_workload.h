// SPDX-License-Identifier: Apache-2.0
//
// json_workload.h - requests written as JSON, for any unary method.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "curtail/load/message/catalog.h"
#include "curtail/load/message/workload.h"

namespace curtail {

// The source of the JSON. One object is the template of all requests. Several objects are as many
// templates, one after the other (JSON lines) or in a list; each request takes one of them.
// json_template.h defines the content of a template.
struct JsonSource {
  // More JSON than this is refused.
  static constexpr uint64_t kMaxBytes = uint64_t{1} << 30;

  std::string text;
  std::string name;  // of the source, for errors; may be empty
  // Chooses the template of a request, as ParseItemChoice() (choice.h) reads it.
  std::string choice = "in-turn";
};

// The whole of a file, as the text of a source; "-" is the standard input.
// Errors: NOT_FOUND and others of the system; RESOURCE_EXHAUSTED (longer than kMaxBytes).
[[nodiscard]] absl::StatusOr<JsonSource> ReadJsonFile(const std::string& file);

// The requests of `source` for `method`, as Catalog::FindMethod() gives it. All of them are checked
// now.
// Errors: INVALID_ARGUMENT, with place and field: `requests.jsonl:3:12: field user.age: "abc" is
// not a valid int32`; RESOURCE_EXHAUSTED (too long).
[[nodiscard]] absl::StatusOr<std::unique_ptr<Workload>> MakeJsonWorkload(const CatalogMethod& method,
                                                                         const JsonSource& source,
                                                                         uint64_t seed);

// A serialized request or reply of `method` as JSON, indented, fields named as in the .proto file.
// Errors: INTERNAL (no such message).
[[nodiscard]] absl::StatusOr<std::string> RequestToJson(const CatalogMethod& method, std::string_view bytes);
[[nodiscard]] absl::StatusOr<std::string> ReplyToJson(const CatalogMethod& method, std::string_view bytes);

}  // namespace curtail
