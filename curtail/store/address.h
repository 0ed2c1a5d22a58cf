// SPDX-License-Identifier: Apache-2.0
//
// address.h - where a store listens, as text and as socket addresses.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "curtail/exec/address.h"
#include "curtail/store/tls.h"

namespace curtail {

// A StoreAddress is a name, all the socket addresses that it stands for, and how to log in there. A
// value type.
struct StoreAddress {
  // "unix:PATH" or "HOST:PORT" ("[HOST]:PORT"), or a URL:
  //
  //   redis://HOST:PORT?user=NAME&password-file=FILE
  //   rediss://HOST:PORT?ca=FILE    over TLS; without `ca` the system's authorities are trusted
  //
  // A URL has no password, as command lines are public: it is in the file, or in the environment
  // (redis.h). Looks a name up now, once, which may block, and keeps all its addresses.
  // Errors: INVALID_ARGUMENT.
  [[nodiscard]] static absl::StatusOr<StoreAddress> Parse(const std::string& text);

  std::string text;                     // of a URL without what follows '?'
  std::vector<Address> sockets;         // at least one, unless default-constructed
  std::string host;                     // of a URL: the name that a certificate is for
  std::shared_ptr<const StoreTls> tls;  // null: plain text
  std::string user;
  std::string password_file;
};

}  // namespace curtail
