// SPDX-License-Identifier: Apache-2.0
//
// grpc_web.h - gRPC-Web over HTTP: binary, and the text form for browsers (PROTOCOL-WEB.md of gRPC).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "curtail/gateway/http_codec.h"
#include "curtail/rpc/context.h"

namespace curtail::gateway {

// Metadata as headers of HTTP.
inline constexpr std::string_view kMetadataPrefix = "grpc-metadata-";

enum class WebForm : unsigned char { kBinary, kText };

// The form that a content type names; none for other types.
std::optional<WebForm> WebFormOf(std::string_view content_type);

// The message of a request's body.
// Errors: INVALID_ARGUMENT (no base64, no frame, text behind it), UNIMPLEMENTED (compressed, or not
// exactly one message).
[[nodiscard]] absl::StatusOr<std::string> WebMessage(WebForm form, std::string_view body);

// `message` is ignored unless `status` is OK.
HttpReply WebReply(WebForm form, const absl::Status& status, std::string_view message,
                   const ReplyMetadata& metadata);

// The parts of an answer of many messages: its head, each message, and the end. In the text form each
// part has padding of its own. Metadata that browsers would obey as headers, such as set-cookie, have
// the prefix "grpc-metadata-" in the head: they are the server's, and not the gateway's.
std::vector<std::pair<std::string, std::string>> WebHeaders(WebForm form, const Metadata& initial);
std::string WebPart(WebForm form, std::string_view message);
std::string WebEnd(WebForm form, const absl::Status& status, const Metadata& trailing);

}  // namespace curtail::gateway
