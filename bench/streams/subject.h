// SPDX-License-Identifier: Apache-2.0
//
// subject.h - a server and a client of one stack, in this process, that stream to each other.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace curtail::bench {

// Each call returns when the stream has ended. Errors: the stack's own, or INTERNAL when messages are missing.
class StreamSubject {
 public:
  virtual ~StreamSubject() = default;
  // `count` messages of `size` bytes, each sent when the one before is back.
  virtual absl::Status PingPong(int count, size_t size) = 0;
  // The server sends `count` messages of `size` bytes.
  virtual absl::Status Watch(int count, size_t size) = 0;
  // The client sends them.
  virtual absl::Status Upload(int count, size_t size) = 0;
};

// The names of all subjects of this build: "curtail-auto", a config in place of "auto"; "grpc-sync"; "raw-socket".
std::vector<std::string> SubjectNames();
// Errors: INVALID_ARGUMENT for an unknown name, or why the server cannot start.
absl::StatusOr<std::unique_ptr<StreamSubject>> MakeSubject(const std::string& name);
// Errors: UNAVAILABLE, if there is no socket for it.
absl::StatusOr<std::unique_ptr<StreamSubject>> MakeRawSubject();
// Null in builds without gRPC.
std::unique_ptr<StreamSubject> MakeGrpcSubject();

}  // namespace curtail::bench
