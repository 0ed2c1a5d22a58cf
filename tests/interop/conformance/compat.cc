// SPDX-License-Identifier: Apache-2.0
#include "compat.h"

#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "curtail/base/strings.h"

namespace curtail::conformance {

bool Read(google::protobuf::MessageLite* message) {
  unsigned char prefix[4];
  if (std::fread(prefix, 1, sizeof prefix, stdin) != sizeof prefix) return false;
  uint32_t size = 0;
  for (const unsigned char byte : prefix) size = size << 8 | byte;
  std::string bytes(size, '\0');
  return std::fread(bytes.data(), 1, size, stdin) == size && message->ParseFromString(bytes);
}

void Write(const google::protobuf::MessageLite& message) {
  const std::string bytes = message.SerializeAsString();
  for (const int shift : {24, 16, 8, 0}) std::putchar(static_cast<int>(bytes.size() >> shift & 0xff));
  std::fwrite(bytes.data(), 1, bytes.size(), stdout);
  std::fflush(stdout);
}

void AddHeaders(const Metadata& metadata, Headers* headers) {
  for (const auto& [key, value] : metadata) {
    v1::Header* header = nullptr;
    for (v1::Header& one : *headers) {
      if (one.name() == key) header = &one;
    }
    if (header == nullptr) {
      header = headers->Add();
      header->set_name(std::string(key));
    }
    header->add_value(key.ends_with("-bin") ? wire::Base64Encode(value) : std::string(value));
  }
}

ScratchFile::ScratchFile(std::string_view text) : path_("/tmp/conformance-XXXXXX") {
  const int fd = mkstemp(path_.data());
  if (fd < 0 || write(fd, text.data(), text.size()) != static_cast<ssize_t>(text.size())) path_.clear();
  if (fd >= 0) close(fd);
}

ScratchFile::~ScratchFile() { unlink(path_.c_str()); }

v1::Error ToError(const absl::Status& status) {
  v1::Error error;
  error.set_code(static_cast<v1::Code>(status.code()));
  error.set_message(std::string(Message(status)));
  status.ForEachPayload([&error](absl::string_view url, const absl::Cord& value) {
    google::protobuf::Any* any = error.add_details();
    any->set_type_url(std::string(url));
    any->set_value(std::string(value));
  });
  return error;
}

absl::Status ToStatus(const v1::Error& error) {
  absl::Status status(static_cast<absl::StatusCode>(error.code()), error.message());
  for (const google::protobuf::Any& any : error.details()) {
    status.SetPayload(any.type_url(), absl::Cord(any.value()));
  }
  return status;
}

}  // namespace curtail::conformance
