// SPDX-License-Identifier: Apache-2.0
//
// transcoder.h - requests and replies of HTTP and JSON as those of gRPC, by google.api.http rules.
//
// A method is reached by each rule of its google.api.http option, and always by
// POST /package.Service/Method with the request as JSON.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "curtail/gateway/path_template.h"
#include "curtail/load/message/catalog.h"

namespace google::api {
class HttpRule;
}

namespace curtail::gateway {

// A Route is one way to reach a method.
struct Route {
  CatalogMethod method;
  std::string verb;  // "GET"
  PathTemplate path;
  std::string body;           // the field that the body is: "*" all of the request, "" none
  std::string response_body;  // the field of the reply that is the response; "": all of it
  // A google.api.HttpBody, which is bytes of any type instead of JSON: what the body becomes, and
  // the whole reply, or each of a stream's.
  bool raw_body = false, raw_reply = false;
};

// The type of a body that is written as a query is.
inline constexpr std::string_view kForm = "application/x-www-form-urlencoded";

// True if a Content-Type is `type`, whatever its case and parameters (RFC 9110, 8.3.1).
bool IsMediaType(std::string_view content_type, std::string_view type);

// The type of bytes that come without one.
inline constexpr std::string_view kAnyBytes = "application/octet-stream";

// Bytes and the value of their header content-type.
struct RawReply {
  std::string type, bytes;
};

// The HTTP status that a call's status becomes (google/rpc/code.proto).
int HttpStatusOf(absl::StatusCode code);

// A Transcoder holds the routes to the methods of a catalog. Immutable; thread-safe.
class Transcoder {
 public:
  // For the methods of `services`, by their full names, or of all if there are none. A rule that cannot be mapped is left
  // out: see warnings(). Errors: INVALID_ARGUMENT, which names the service that is not in the catalog.
  [[nodiscard]] static absl::StatusOr<std::unique_ptr<Transcoder>> Make(
      Catalog catalog, const std::vector<std::string>& services = {});
  ~Transcoder();

  struct Match {
    const Route* route = nullptr;
    std::vector<Binding> bindings;
  };
  // The most specific route of a request. `path` has no query.
  // Errors: NOT_FOUND; UNIMPLEMENTED when the path has other verbs, which the message lists.
  [[nodiscard]] absl::StatusOr<Match> Find(std::string_view verb, std::string_view path) const;

  // The serialized request of a call. `query` is what follows '?', `type` the body's header: the body
  // is JSON unless the route or `type` (a form) says otherwise.
  // Errors: INVALID_ARGUMENT, which names the field, or says what is wrong with the JSON.
  [[nodiscard]] absl::StatusOr<std::string> Request(const Match& match, std::string_view query,
                                                    std::string_view body, std::string_view type = {}) const;
  // A serialized google.api.HttpBody. Errors: INTERNAL (it is none).
  [[nodiscard]] static absl::StatusOr<RawReply> Raw(std::string_view bytes);
  // A serialized reply as JSON. Errors: INTERNAL (no such message).
  [[nodiscard]] absl::StatusOr<std::string> Reply(const Route& route, std::string_view bytes) const;
  // An error as JSON: {"code": 5, "message": "...", "details": [...]}. A detail of a type that the catalog or
  // google/rpc/error_details.proto describes is JSON; another one has "value", its bytes in base64.
  std::string Error(const absl::Status& status) const;

  // The most specific first.
  const std::vector<Route>& routes() const { return routes_; }
  // A sentence for each rule that was left out, with its method and what is wrong with it.
  const std::vector<std::string>& warnings() const { return warnings_; }

 private:
  struct Impl;

  explicit Transcoder(Catalog catalog);
  void AddRoutes(const CatalogMethod& method);
  absl::Status AddRoute(const CatalogMethod& method, const google::api::HttpRule& rule);

  const Catalog catalog_;
  std::vector<Route> routes_;
  std::vector<std::string> warnings_;
  std::unique_ptr<Impl> impl_;
};

}  // namespace curtail::gateway
