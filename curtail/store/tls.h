// SPDX-License-Identifier: Apache-2.0
//
// tls.h - TLS to a store: the authorities that a client trusts, and one connection.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

struct ssl_ctx_st;
struct ssl_st;

namespace curtail {

// A StoreTls takes certificates of its authorities for the name of the store, over TLS 1.2 or
// newer. Immutable; thread-safe.
class StoreTls {
 public:
  // Trusts the certificates of the PEM file, or the system's if `ca_file` is empty. Errors:
  // INVALID_ARGUMENT with the file.
  [[nodiscard]] static absl::StatusOr<std::shared_ptr<const StoreTls>> Load(const std::string& ca_file);
  ~StoreTls();
  StoreTls(const StoreTls&) = delete;
  StoreTls& operator=(const StoreTls&) = delete;

 private:
  friend class TlsChannel;
  StoreTls(ssl_ctx_st* context, std::string ca_file) : context_(context), ca_file_(std::move(ca_file)) {}

  ssl_ctx_st* const context_;
  const std::string ca_file_;
};

// A TlsChannel is TLS over one socket that does not block. For one thread at a time.
class TlsChannel {
 public:
  // The store is `host`, a DNS name or an IP address, which its certificate has to be for. The
  // socket outlives the channel.
  TlsChannel(std::shared_ptr<const StoreTls> tls, const std::string& host, int fd);
  ~TlsChannel();
  TlsChannel(const TlsChannel&) = delete;
  TlsChannel& operator=(const TlsChannel&) = delete;

  enum class Step {
    kDone,    // some bytes, or the handshake
    kReads,   // wait until the socket can be read, and call again
    kWrites,  // ... until it takes more
    kEnded,   // the store said goodbye, or the connection broke: see Explain()
  };
  Step Handshake();
  // Takes `*moved` bytes of `bytes`, at least one. Call again with the same bytes after kReads and
  // kWrites.
  Step Write(std::string_view bytes, size_t* moved);
  Step Read(char* to, size_t room, size_t* moved);
  // Why it ended. FAILED_PRECONDITION: the certificate is not taken, with what to do; else
  // UNAVAILABLE.
  absl::Status Explain(std::string_view peer) const;

 private:
  Step Note(int result);

  const std::shared_ptr<const StoreTls> tls_;
  const std::string host_;
  ssl_st* const ssl_;
  int error_ = 0;       // errno of the socket
  std::string reason_;  // OpenSSL's
};

}  // namespace curtail
