// SPDX-License-Identifier: Apache-2.0
//
// in_process.h - a service that callers in the same process reach without a connection and without
// serialising.
//
// A Channel to an InProcess takes the same calls as one to an address, under all threading models,
// and the handlers are the same. So an application runs as one process a service, or as a monolith.
// How a call runs:
//
//  1. The handler gets the caller's message itself and writes into the caller's reply. Both stay
//     with the caller until the call has ended. A caller whose generated messages are not the
//     service's has them serialized.
//  2. The handler's Context is a part of the caller's: the same deadline, cancelled with it. Its
//     metadata is what a call over a connection would carry, and the metadata that it adds to its
//     answer reaches the caller.
//  3. Synchronous and fiber models: a single call runs on the caller's thread or fiber. Of several
//     at once, calls that may wait run beside each other as curtail::async() runs functions.
//  4. Asynchronous models: the handler begins on the caller's thread, and the thread that ends it
//     goes on. A straight-line handler that waits holds that thread meanwhile.
//  5. Calls of many messages have the same handlers as over a connection. Handler and caller run
//     beside each other, as their models let them wait. Each direction holds 64 KiB of serialized
//     messages and one message; then its writer waits.
//  6. Calls nest at most kMaxDepth deep, as they nest on a stack. A deeper one fails with
//     RESOURCE_EXHAUSTED.
//
// When not to use it: a service of its own process has its own threads, queue and limits; one in
// the caller's shares the caller's.
//
// Code: client/in_process/.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "curtail/rpc/service.h"

namespace curtail {

class ServerInterceptor;  // curtail/rpc/interceptor.h

// An InProcess is the handlers of one instance of a service, by their paths. Immutable once calls
// are made: any thread.
class InProcess {
 public:
  static constexpr int kMaxDepth = 32;

  // `name` stands for the address in errors: "leaf-0". Each call passes the interceptors, as it
  // would a server's.
  explicit InProcess(std::string name, std::vector<ServerInterceptor*> interceptors = {});
  ~InProcess();
  InProcess(const InProcess&) = delete;
  InProcess& operator=(const InProcess&) = delete;

  // Has it run the service's handlers; the service outlives it. Channels may be made before, calls
  // not. Errors: INVALID_ARGUMENT for a method that it has already.
  absl::Status Serve(Service& service);

  const std::string& name() const { return name_; }
  // For the runtime.
  const std::vector<ServerInterceptor*>& interceptors() const { return interceptors_; }
  // "/package.Service/Method"; null when there is none. For the runtime.
  const MethodHandler* Find(std::string_view path) const;

 private:
  struct Methods;
  const std::string name_;
  const std::vector<ServerInterceptor*> interceptors_;
  const std::unique_ptr<Methods> methods_;
};

}  // namespace curtail
