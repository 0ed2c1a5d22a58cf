// SPDX-License-Identifier: Apache-2.0
//
// reflection_client.h - asks a server for the descriptors of its services.
//
// https://github.com/grpc/grpc/blob/master/doc/server-reflection.md. The protocol is a stream in both
// directions, but a stream of one question gets one answer and ends, as a unary call does. The few messages
// are read and written by hand: generated ones would collide with those of a program that links grpc++.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "curtail/base/clock.h"
#include "curtail/rpc/channel.h"
#include "google/protobuf/descriptor.pb.h"

namespace curtail::internal {

// Files by name.
using ProtoFiles = std::map<std::string, google::protobuf::FileDescriptorProto>;

// A ReflectionClient asks one server, v1 of the protocol first and v1alpha where that is not implemented. Its
// methods block until the deadline at most. Not thread-safe. Errors of all: UNIMPLEMENTED (no reflection),
// UNAVAILABLE, DEADLINE_EXCEEDED, DATA_LOSS (an answer that is no answer), RESOURCE_EXHAUSTED, NOT_FOUND and
// others that the server gives.
class ReflectionClient {
 public:
  static constexpr size_t kMaxServices = 10000;
  static constexpr size_t kMaxFiles = 5000;
  static constexpr size_t kMaxFileBytes = 64u << 20;  // of all files together

  // `metadata` goes with every question.
  ReflectionClient(const std::string& target, const ChannelOptions& options, Deadline deadline,
                   const Metadata& metadata);

  [[nodiscard]] absl::StatusOr<std::vector<std::string>> ListServices();
  // Adds the file that defines `symbol`, and all that it imports, to `files`.
  [[nodiscard]] absl::Status FetchSymbol(const std::string& symbol, ProtoFiles* files);

 private:
  enum Question { kFileByName = 3, kFileContainingSymbol = 4, kListServices = 7 };
  enum Answer { kFiles = 4, kServices = 6, kError = 7 };

  // The part of the answer that `answer` names.
  absl::StatusOr<std::string> Ask(Question question, std::string_view argument, Answer answer);
  absl::StatusOr<std::string> Exchange(const std::string& request);
  absl::StatusOr<std::string> Unary(std::string_view path, const std::string& request);
  absl::Status Explain(const absl::Status& status) const;
  absl::Status AddFiles(std::string_view answer, ProtoFiles* files);

  const std::string target_;
  const Deadline deadline_;
  const Metadata metadata_;
  Client client_;
  Channel channel_;
  size_t version_ = 0;  // of the protocol's paths, the one that the server speaks
  size_t file_bytes_ = 0;
  std::set<std::string> asked_;  // imports
};

}  // namespace curtail::internal
