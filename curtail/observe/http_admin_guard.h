// SPDX-License-Identifier: Apache-2.0
//
// http_admin_guard.h - which HTTP requests an admin port answers.
//
// A web page that an operator has open may send requests to this machine. The guard lets none of them through:
//  A1. Over TCP a request has one Host header, which is a numeric address, "localhost", or a name that the operator or
//      the machine gave. A page whose name was rebound to this machine's address has its own name there.
//  A2. A request with an Origin comes from a page of this very port, by the same Host.
//  A3. A browser that says that a page of another site sent the request (Sec-Fetch-Site) is refused.
//  A4. POST changes something: only over a Unix socket, which the file system guards, or with the token.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "curtail/wire/http/http_codec.h"

namespace curtail::observe {

struct HttpAdminAccess {
  bool unix_socket = false;
  // Names, beside "localhost" and numeric addresses, that a Host header may have; see http_host.h.
  std::vector<std::string> hosts;
  // The secret of POST: "authorization: Bearer TOKEN". Empty: over TCP there is no POST.
  std::string token;
};

// Empty if the request may pass; or else why not, for a reply of status 403.
std::string_view WhyRefused(const wire::HttpRequest& request, const HttpAdminAccess& access);

// The same text, found in a time that depends on the lengths only.
bool SameSecret(std::string_view a, std::string_view b);

}  // namespace curtail::observe
