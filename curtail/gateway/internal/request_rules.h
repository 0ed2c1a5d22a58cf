// SPDX-License-Identifier: Apache-2.0
//
// request_rules.h - what the headers of a request ask for, and which of them are obeyed.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "curtail/base/clock.h"
#include "curtail/gateway/gateway.h"
#include "curtail/gateway/http_codec.h"
#include "curtail/rpc/context.h"

namespace curtail::gateway::internal {

// The value of a header; empty without it.
std::string_view HeaderOf(const HttpRequest& request, std::string_view key);

// The path of a target, and what follows '?'. A whole URL is one, too (RFC 9112, 3.2.2): proxies and some load generators
// send them.
std::pair<std::string_view, std::string_view> SplitTarget(std::string_view target);

// The names that requests may ask for; nothing: all.
using Hosts = std::optional<std::vector<std::string>>;
Hosts HostsOf(const GatewayOptions& options);
// True if the request asks for one of `hosts`, or names none: browsers do, old clients of HTTP/1.0 do not.
bool MayAsk(const HttpRequest& request, const Hosts& hosts);

// The origin that the answer has to name; empty for none.
// Errors: PERMISSION_DENIED: web pages of the request's origin may not call.
absl::StatusOr<std::string> CheckOrigin(const HttpRequest& request, const std::vector<std::string>& allowed);

// True if a browser asks whether a page may call.
bool IsPreflight(const HttpRequest& request);
// The answer to it. `headers`: those that calls carry as metadata.
HttpReply PreflightReply(const std::vector<std::string>& headers);

// Turns names of headers into keys of metadata. Errors: INVALID_ARGUMENT: metadata cannot have one of them.
absl::Status MakeKeys(std::vector<std::string>* headers);
// The headers of these names as metadata; and x-forwarded-for, unless it is one of them: where the client is, if that is not
// empty. Errors: INVALID_ARGUMENT, which names the header.
absl::StatusOr<Metadata> MetadataOf(const HttpRequest& request, const std::vector<std::string>& keys,
                                    const std::string& client);

// By its grpc-timeout; at most `limit` from now. Errors: INVALID_ARGUMENT: the header is malformed.
absl::StatusOr<Deadline> DeadlineOf(const HttpRequest& request, Nanos limit);

}  // namespace curtail::gateway::internal
