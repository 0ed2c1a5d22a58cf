// SPDX-License-Identifier: Apache-2.0
//
// tls.h - keys, certificates and trusted authorities: the TLS settings of channels and servers.
//
// Load once and share among all channels or servers. The handshake asks for TLS 1.2 or newer and
// for HTTP/2 by ALPN; a peer without either is turned away. All files are PEM. Thread-safe.
//
// Reload: a connection that is about to be made looks at the files, at most once in
// `reload_interval`, and uses what they hold by then. Files that cannot be used, such as a
// certificate without its key, leave the keys as they were, and a line on stderr says why. Older
// connections keep theirs.
//
// Resumption: a client that connects again resumes its session, which spares both ends the
// certificates. A session is resumed for an hour at most, and not across a reload of the server.
// A certificate of a client is verified when its session begins.
//
// Code: transport/tls.cc, transport/tls_keys.cc, transport/tls_stream.cc.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "curtail/base/clock.h"

namespace curtail {

namespace internal {
class TlsContext;
class TlsKeys;
}  // namespace internal

// The verified certificate of a caller: Context::peer_certificate().
struct PeerCertificate {
  bool empty() const { return subject.empty() && dns_names.empty() && uris.empty(); }

  std::string subject;                 // RFC 2253: "CN=cart,O=shop"
  std::vector<std::string> dns_names;  // its alternative names, in order
  std::vector<std::string> uris;       // "spiffe://shop.example/cart"
};

// The identity of a client, and the authorities it trusts.
struct TlsOptions {
  // The certificate authorities that may vouch for a server; empty: the system's.
  std::string ca_file;
  // For servers that ask for a client certificate: the client's certificate, followed by the
  // certificates that vouch for it, and its private key. Both or neither.
  std::string certificate_file;
  std::string key_file;
  // The name that the server's certificate must be for, and that calls carry as their :authority.
  // Empty: the host of the channel's target. A DNS name or an IP address. If there is neither, as
  // with a resolver and an empty target, calls fail with UNAVAILABLE.
  std::string server_name;
  // Takes any certificate. For tests: every host on the path can read and change all data.
  bool insecure_skip_verify = false;
  // From one look at the files to the next; zero: never.
  Nanos reload_interval = std::chrono::seconds(10);
};

// The identity of a server, and the clients it serves.
struct ServerTlsOptions {
  // The server's certificate, followed by the certificates that vouch for it, and its private key.
  // Both are needed.
  std::string certificate_file;
  std::string key_file;
  // If set, the server serves only clients whose certificate one of these authorities vouches for
  // (mutual TLS).
  std::string client_ca_file;
  // Turns away a client that asks for a server name (SNI) that the certificate is not for.
  bool check_server_name = false;
  // From one look at the files to the next; zero: only Reload() looks.
  Nanos reload_interval = std::chrono::seconds(10);
};

// A ClientTls holds the TLS settings that channels share: ChannelOptions::tls. Thread-safe.
class ClientTls {
 public:
  // Errors: INVALID_ARGUMENT with the name of a file that is missing, invalid, or does not fit the
  // others. Reads files; may take some milliseconds.
  [[nodiscard]] static absl::StatusOr<std::shared_ptr<const ClientTls>> Load(const TlsOptions& options);
  ~ClientTls();

  // For the next connection.
  std::shared_ptr<const internal::TlsContext> context() const;
  const TlsOptions& options() const { return options_; }

 private:
  ClientTls(std::unique_ptr<internal::TlsKeys> keys, const TlsOptions& options);
  const std::unique_ptr<internal::TlsKeys> keys_;
  const TlsOptions options_;
};

// A ServerTls holds the TLS settings of a server: ServerOptions::tls. Thread-safe.
class ServerTls {
 public:
  // As ClientTls::Load().
  [[nodiscard]] static absl::StatusOr<std::shared_ptr<const ServerTls>> Load(const ServerTlsOptions& options);
  ~ServerTls();

  // Reads the files now, whatever the interval. Errors as of Load(); the keys stay as they were.
  absl::Status Reload() const;
  // For the next connection.
  std::shared_ptr<const internal::TlsContext> context() const;

 private:
  explicit ServerTls(std::unique_ptr<internal::TlsKeys> keys);
  const std::unique_ptr<internal::TlsKeys> keys_;
};

}  // namespace curtail
