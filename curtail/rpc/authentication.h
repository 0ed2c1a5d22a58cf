// SPDX-License-Identifier: Apache-2.0
//
// authentication.h - bearer tokens: a server that accepts signed ones, a client that sends them.
//
//   auto verifier = curtail::JwtVerifier::Load({.key_file = "/etc/shop/jwks.json",
//                                               .issuer = "https://id.shop.example",
//                                               .audience = "shop"});
//   curtail::JwtAuthentication authentication(*std::move(verifier));
//   options.interceptors = {&authentication};  // ServerOptions
//
//   curtail::BearerCredentials credentials(token);
//   curtail::Channel channel(&client, address, {.tls = tls, .interceptors = {&credentials}});
//
// Code: auth/authentication.cc.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "curtail/rpc/interceptor.h"
#include "curtail/rpc/jwt.h"

namespace curtail {

// A JwtAuthentication lets calls pass that carry "authorization: Bearer TOKEN" with a valid token.
// Handlers find its claims among the context's properties: "jwt.subject", "jwt.issuer" and
// "jwt.claims" (JSON). Others end with UNAUTHENTICATED and a text that is the same for all tokens
// whose signature does not hold.
class JwtAuthentication final : public ServerInterceptor {
 public:
  // Calls to `open` paths ("/shop.Catalog/List"), or services ("/shop.Catalog/"), need no token. So
  // does no health check that the library answers; reflection does.
  explicit JwtAuthentication(std::unique_ptr<const JwtVerifier> verifier, std::vector<std::string> open = {});

  absl::Status Before(const IncomingCall& call) override;

 private:
  bool IsOpen(std::string_view path) const;

  // Immutable after construction.
  const std::unique_ptr<const JwtVerifier> verifier_;
  const std::vector<std::string> open_;
};

// A BearerCredentials adds "authorization: Bearer TOKEN" to calls. It refuses calls that others on
// the network could read (OutgoingCall::secure) with UNAUTHENTICATED, before anything is sent.
class BearerCredentials final : public ClientInterceptor {
 public:
  // The token of the moment, for tokens that are renewed. Called for each call, by any thread: it
  // must not block. An error is the call's status.
  using Source = std::function<absl::StatusOr<std::string>()>;
  enum class Transport {
    kSecure,     // TLS with a verified certificate, a Unix socket, or within the process
    kPlainText,  // any: for tests, and where something else encrypts
  };

  explicit BearerCredentials(std::string token, Transport transport = Transport::kSecure);
  explicit BearerCredentials(Source source, Transport transport = Transport::kSecure);

  absl::Status Before(const OutgoingCall& call, Metadata& metadata) override;

 private:
  // Immutable after construction.
  const Source source_;
  const Transport transport_;
};

}  // namespace curtail
