// SPDX-License-Identifier: Apache-2.0
//
// http_workload.h - the bodies of requests over HTTP.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "curtail/load/message/workload.h"

namespace curtail {

// The source of the bodies. Each request has one of them, JSON or other text.
struct HttpSource {
  // Of all requests, as reports show it: "GET /search".
  std::string name;
  // None: no request has a body.
  std::vector<std::string> bodies;
  // True if bodies may have placeholders, as in json_template.h: "{{uniform 1 100}}" becomes a
  // number wherever it stands, and "{{{{" a literal "{{".
  bool drawn = true;
  // Chooses the body of a request, as ParseItemChoice() (choice.h) reads it.
  std::string choice = "in-turn";
};

// Errors: INVALID_ARGUMENT (a placeholder, the choice).
[[nodiscard]] absl::StatusOr<std::unique_ptr<Workload>> MakeHttpWorkload(const HttpSource& source,
                                                                         uint64_t seed);

// The bodies in the text of a file: its lines that are not empty.
std::vector<std::string> BodiesOfLines(std::string_view text);

}  // namespace curtail
