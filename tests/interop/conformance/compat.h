// SPDX-License-Identifier: Apache-2.0
//
// compat.h - what the two conformance programs share: messages on standard input and output, and the suite's own forms
// of metadata and errors.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "connectrpc/conformance/v1/service.pb.h"
#include "curtail/rpc/context.h"
#include "google/protobuf/message_lite.h"

namespace curtail::conformance {

namespace v1 = connectrpc::conformance::v1;
using Headers = google::protobuf::RepeatedPtrField<v1::Header>;

// The next message of the suite, whose length comes first; false at the end of the input.
bool Read(google::protobuf::MessageLite* message);
void Write(const google::protobuf::MessageLite& message);

// Values of "-bin" keys are base64 in the suite's form, and bytes in curtail's.
void AddHeaders(const Metadata& metadata, Headers* headers);
// Calls add(key, value) for each.
template <class Add>
void ForEachHeader(const Headers& headers, Add add) {
  for (const v1::Header& header : headers) {
    for (const std::string& value : header.value()) {
      const bool binary = header.name().ends_with("-bin") || header.name().ends_with("-Bin");
      add(header.name(), binary ? wire::Base64Decode(value).value_or(value) : value);
    }
  }
}

// A file with this text until it is destroyed.
class ScratchFile {
 public:
  explicit ScratchFile(std::string_view text);
  ~ScratchFile();
  ScratchFile(const ScratchFile&) = delete;
  ScratchFile& operator=(const ScratchFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

v1::Error ToError(const absl::Status& status);
absl::Status ToStatus(const v1::Error& error);

}  // namespace curtail::conformance
