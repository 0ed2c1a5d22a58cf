// SPDX-License-Identifier: Apache-2.0
//
// peer_identity.h - the verified certificate of a connection's peer, parsed when a handler first asks.
#pragma once

#include <mutex>

#include "curtail/rpc/tls.h"

struct x509_st;

namespace curtail::internal {

// Thread-safe. The connection owns it, and its calls refer to it.
class PeerIdentity {
 public:
  // Takes the reference to `certificate`.
  explicit PeerIdentity(x509_st* certificate) : x509_(certificate) {}
  ~PeerIdentity();
  PeerIdentity(const PeerIdentity&) = delete;
  PeerIdentity& operator=(const PeerIdentity&) = delete;

  const PeerCertificate& certificate() const;

 private:
  x509_st* const x509_;
  mutable std::once_flag once_;
  mutable PeerCertificate parsed_;  // written within once_
};

}  // namespace curtail::internal
