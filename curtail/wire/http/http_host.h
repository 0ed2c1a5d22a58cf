// SPDX-License-Identifier: Apache-2.0
//
// http_host.h - whether the Host header of a request is a name of this server.
//
// A page on the web may have its own name resolve to an address behind a firewall (DNS rebinding). A browser then takes the
// server there for the page's own, and lets the page send any request and read the answer. The Host header of such a
// request is the page's name, so a server refuses names that it was not given.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "curtail/wire/http/http_codec.h"

namespace curtail::wire {

// The value of a header that the request has exactly once.
std::optional<std::string_view> OnlyValue(const HttpRequest& request, std::string_view key);

// "NAME", "NAME:PORT" or "[ADDRESS]:PORT" without port and brackets, in lower case. Empty: it is malformed.
std::string HostName(std::string_view host);

// True if the request has one Host header, and that is a numeric address, "localhost" or one of `names`, which
// HostName() has returned.
bool AsksFor(const HttpRequest& request, const std::vector<std::string>& names);

}  // namespace curtail::wire
