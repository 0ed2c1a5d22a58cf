// SPDX-License-Identifier: Apache-2.0
//
// responder.h - the answer that a request is owed.
//
// Code: call/responder.cc.
#pragma once

#include <string>
#include <utility>

#include "absl/status/status.h"

namespace curtail {

namespace internal {

// A request that is to be answered: the server's, or one of a caller in this process.
class Answerable {
 public:
  // Where the serialized reply goes; empty before.
  virtual std::string* ReplyBytes() = 0;
  // Answers. Once.
  virtual void Finish(absl::Status status) = 0;
  // The Responder was destroyed without an answer.
  virtual void GiveUp() = 0;

 protected:
  ~Answerable() = default;
};

}  // namespace internal

// A Responder owes the answer to one request. Move it to the code that will know the answer.
// Destroyed without an answer it answers INTERNAL. One thread at a time may use it.
class Responder {
 public:
  explicit Responder(internal::Answerable* call) : call_(call) {}
  Responder(Responder&& other) noexcept : call_(std::exchange(other.call_, nullptr)) {}
  Responder& operator=(Responder&&) = delete;
  ~Responder();

  // Answers: `reply` is the serialized message, ignored unless `status` is OK. The request's
  // Context and bytes are gone afterwards. REQUIRES: the first call, on an object that was not
  // moved from.
  void Finish(absl::Status status, std::string reply);
  // The same in two steps, without a string of the caller's: write the serialized message to
  // `*reply()`, which is empty; then Finish(status).
  std::string* reply();
  void Finish(absl::Status status);

 private:
  internal::Answerable* call_;
};

}  // namespace curtail
