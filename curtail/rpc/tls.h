// SPDX-License-Identifier: Apache-2.0
//
// tls.h - keys, certificates and trusted authorities: the TLS settings of channels and servers.
//
// Load once and share among all channels or servers: only loading reads and parses files. The
// handshake asks for TLS 1.2 or newer and for HTTP/2 by ALPN; a peer without either is turned away.
// Sessions are not resumed: connections are few and live long. All files are PEM. Thread-safe: the
// classes do not change.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace curtail {

namespace internal {
class TlsContext;
}

// The identity of a client, and the authorities it trusts.
struct TlsOptions {
  // The certificate authorities that may vouch for a server; empty: those that the system trusts.
  std::string ca_file;
  // For servers that ask for a client certificate: the client's certificate, followed by those that
  // vouch for it, and its private key. Both or neither.
  std::string certificate_file;
  std::string key_file;
  // The name that the server's certificate must be for, and that calls carry as their :authority.
  // Empty: the host of the channel's target. A DNS name or an IP address.
  std::string server_name;
  // Takes any certificate. For tests: every host on the path can read and change all data.
  bool insecure_skip_verify = false;
};

// The identity of a server, and the clients it serves.
struct ServerTlsOptions {
  // The server's certificate, followed by those that vouch for it, and its private key. Both are
  // needed.
  std::string certificate_file;
  std::string key_file;
  // If set, the server serves only clients whose certificate one of these authorities vouches for
  // (mutual TLS).
  std::string client_ca_file;
};

// A ClientTls holds the TLS settings that channels share: ChannelOptions::tls. Thread-safe.
class ClientTls {
 public:
  // Errors: INVALID_ARGUMENT with the name of a file that is missing, invalid, or does not fit the
  // others. Reads files; may take some milliseconds.
  [[nodiscard]] static absl::StatusOr<std::shared_ptr<const ClientTls>> Load(const TlsOptions& options);
  ~ClientTls();

  const internal::TlsContext& context() const { return *context_; }
  const TlsOptions& options() const { return options_; }

 private:
  ClientTls(std::unique_ptr<internal::TlsContext> context, const TlsOptions& options);
  const std::unique_ptr<internal::TlsContext> context_;
  const TlsOptions options_;
};

// A ServerTls holds the TLS settings of a server: ServerOptions::tls. Thread-safe.
class ServerTls {
 public:
  // As ClientTls::Load().
  [[nodiscard]] static absl::StatusOr<std::shared_ptr<const ServerTls>> Load(const ServerTlsOptions& options);
  ~ServerTls();

  const internal::TlsContext& context() const { return *context_; }

 private:
  explicit ServerTls(std::unique_ptr<internal::TlsContext> context);
  const std::unique_ptr<internal::TlsContext> context_;
};

}  // namespace curtail
