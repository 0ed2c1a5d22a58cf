// SPDX-License-Identifier: Apache-2.0
//
// catalog.h - the services and methods of a server, and the form of their messages.
//
// A Catalog learns them at run time from the server itself (gRPC server reflection) or from .proto
// files, without generated code.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "curtail/base/clock.h"
#include "curtail/rpc/channel.h"

namespace google::protobuf {
class MethodDescriptor;
}

namespace curtail {

// A method of a catalog.
struct CatalogMethod {
  std::string path;  // "/package.Service/Method"
  std::string request_type;
  std::string reply_type;
  bool client_streaming = false;
  bool server_streaming = false;
  bool idempotent = false;  // its .proto declares that it may run more than once
  // Valid as long as a copy of the catalog.
  const google::protobuf::MethodDescriptor* descriptor = nullptr;

  bool unary() const { return !client_streaming && !server_streaming; }
};

// A Catalog holds descriptors of services. Immutable and cheap to copy; thread-safe.
class Catalog {
 public:
  // Asks the server; blocks until the answer, for at most `timeout`. With `method`, written as for
  // FindMethod(), it asks for that method's service only.
  // Errors: UNIMPLEMENTED (no reflection, neither v1 nor v1alpha), UNAVAILABLE, DEADLINE_EXCEEDED,
  // INVALID_ARGUMENT (target), DATA_LOSS, RESOURCE_EXHAUSTED (thousands of files). A service with a
  // wrong description is an error of FindMethod() only.
  [[nodiscard]] static absl::StatusOr<Catalog> FromServer(const std::string& target,
                                                          const ChannelOptions& options, Nanos timeout,
                                                          std::string_view method = {},
                                                          const Metadata& metadata = {});

  // Reads .proto files and their imports. It looks for imports in `import_paths`, or without any in
  // the files' own folders and the current one. Files are named by their path on disk or below an
  // import path. The files google/*.proto that the program has linked may be missing. Files
  // whose names end with .protoset, .binpb, .desc or .pb are descriptor sets instead, as protoc
  // --descriptor_set_out writes them.
  // Errors: NOT_FOUND (file), INVALID_ARGUMENT: "a.proto:3:12: ...".
  [[nodiscard]] static absl::StatusOr<Catalog> FromProtoFiles(const std::vector<std::string>& files,
                                                              const std::vector<std::string>& import_paths);

  // True if it has the service of a method, written as for FindMethod(); the method may be unknown.
  [[nodiscard]] bool Describes(std::string_view name) const;
  // The unary method, or with `streaming` the one that is not, written "package.Service/Method",
  // "/package.Service/Method" or "package.Service.Method".
  // Errors: NOT_FOUND, with the existing names; INVALID_ARGUMENT (not a name; not of that kind).
  [[nodiscard]] absl::StatusOr<CatalogMethod> FindMethod(std::string_view name, bool streaming = false) const;

  // All methods by service, streaming ones included.
  std::vector<CatalogMethod> ListMethods() const;
  // The paths of unary methods that are declared to do no harm when they run twice.
  std::vector<std::string> IdempotentMethods() const;
  // The services, including those without a usable description.
  const std::vector<std::string>& services() const;

 private:
  static absl::StatusOr<Catalog> FromDescriptorSets(const std::vector<std::string>& files);
  struct Impl;
  explicit Catalog(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}

  std::shared_ptr<const Impl> impl_;  // shared by the copies
};

}  // namespace curtail
