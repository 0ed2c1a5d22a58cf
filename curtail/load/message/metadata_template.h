// SPDX-License-Identifier: Apache-2.0
//
// metadata_template.h - metadata of a load's requests, with placeholders as in json_template.h.
//
//   x-request-id: {{uuid}}
//   authorization: Bearer user-{{uniform 1 1000}}
//
// {{bytes N}} serves only as the whole value of a key in "-bin", whose text is base64 otherwise.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "curtail/load/message/journey.h"
#include "curtail/wire/metadata.h"

namespace curtail {

namespace internal {
class ReplyFields;
}

// A MetadataTemplate writes the metadata of each request: a pure function of the text, the seed and
// the request's number. Immutable, cheap to copy; thread-safe.
class MetadataTemplate {
 public:
  enum class Rules {
    kGrpc,  // custom metadata; keys in "-bin" have bytes
    kHttp,  // header fields, but for fields that frame messages; ":path" replaces a URL's path
  };

  // A line is "KEY: VALUE". `replies` has the fields of a journey so far, or is null. Errors:
  // INVALID_ARGUMENT that names the line.
  [[nodiscard]] static absl::StatusOr<MetadataTemplate> Parse(const std::vector<std::string>& lines,
                                                              uint64_t seed, Rules rules = Rules::kGrpc,
                                                              internal::ReplyFields* replies = nullptr);

  wire::Metadata Render(uint64_t request) const;
  // Adds the metadata of a journey's step. Errors: INVALID_ARGUMENT, a kept value is absent or not
  // printable.
  absl::Status AddTo(uint64_t request, const KeptValues& kept, wire::Metadata* metadata) const;
  // True if there are no placeholders, so that all requests have the same metadata.
  bool fixed() const;

 private:
  struct Entry;
  MetadataTemplate() = default;

  std::shared_ptr<const std::vector<Entry>> entries_;  // shared by the copies
};

}  // namespace curtail
