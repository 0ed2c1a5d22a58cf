// SPDX-License-Identifier: Apache-2.0
//
// answer_form.h - an answer of gRPC as a client of HTTP reads it: as JSON or as gRPC-Web, at once or in
// parts.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "curtail/base/clock.h"
#include "curtail/gateway/grpc_web.h"
#include "curtail/gateway/http_codec.h"
#include "curtail/gateway/transcoder.h"
#include "curtail/rpc/context.h"

namespace curtail::gateway::internal {

inline constexpr std::string_view kJson = "application/json";
inline constexpr std::string_view kJsonLines = "application/x-ndjson";

// Cheap to copy. The transcoder and the route outlive it.
class AnswerForm {
 public:
  // `web`: as gRPC-Web.
  AnswerForm(const Transcoder& transcoder, std::optional<WebForm> web)
      : transcoder_(&transcoder), web_(web) {}
  // The method that answers. Without it there are errors only.
  void SetRoute(const Route* route) { route_ = route; }
  const Route* route() const { return route_; }
  const std::optional<WebForm>& web() const { return web_; }

  // A whole answer. `message` is ignored unless `status` is OK. With a content-range in the metadata the
  // status of raw bytes is 206, and 416 for OUT_OF_RANGE. With `gone` there, that of NOT_FOUND is 410.
  HttpReply Whole(const absl::Status& status, std::string_view message, const ReplyMetadata& metadata) const;

  // 405: the path is for these verbs only.
  HttpReply WrongVerb(std::string_view verbs) const;
  // 429: a call may begin after `wait`.
  HttpReply TooMany(Nanos wait) const;

  // The parts of a stream: its head, each message, and the end. The first part says which type the
  // whole has: kJsonLines, or that of raw bytes.
  HttpReply Head(const Metadata& initial, std::string_view type) const;
  // Errors: INTERNAL, if the bytes are no such message.
  [[nodiscard]] absl::StatusOr<RawReply> Part(std::string_view message) const;
  // REQUIRES: `status` is OK, or the parts are not raw.
  std::string End(const absl::Status& status, const Metadata& trailing) const;
  // Bytes as they are, in which no error can be told.
  bool raw() const { return !web_ && route_->raw_reply; }

 private:
  const Transcoder* transcoder_;
  std::optional<WebForm> web_;
  const Route* route_ = nullptr;
};

}  // namespace curtail::gateway::internal
