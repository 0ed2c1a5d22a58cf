// SPDX-License-Identifier: Apache-2.0
#include "curtail/gateway/internal/answer_form.h"

#include "curtail/base/strings.h"
#include "curtail/wire/metadata.h"

namespace curtail::gateway::internal {
namespace {

void AddMetadata(const Metadata& metadata, HttpReply* reply) {
  for (const auto& [key, value] : metadata) {
    reply->headers.emplace_back(Join(kMetadataPrefix, key),
                                key.ends_with("-bin") ? wire::Base64Encode(value) : std::string(value));
  }
}

}  // namespace

HttpReply AnswerForm::Whole(const absl::Status& status, std::string_view message,
                            const ReplyMetadata& metadata) const {
  if (web_) return WebReply(*web_, status, message, metadata);
  HttpReply reply;
  absl::StatusOr<RawReply> body = RawReply();
  if (!status.ok()) {
    body = status;
  } else if (route_->raw_reply) {
    body = Transcoder::Raw(message);
  } else {
    absl::StatusOr<std::string> json = transcoder_->Reply(*route_, message);
    if (json.ok()) body = RawReply{std::string(kJson), *std::move(json)};
    if (!json.ok()) body = json.status();
  }
  reply.status = HttpStatusOf(body.status().code());
  AddMetadata(metadata.initial, &reply);
  AddMetadata(metadata.trailing, &reply);
  reply.headers.emplace_back("content-type", body.ok() ? std::move(body->type) : std::string(kJson));
  reply.body = body.ok() ? std::move(body->bytes) : transcoder_->Error(body.status());
  return reply;
}

HttpReply AnswerForm::Head(const Metadata& initial, std::string_view type) const {
  HttpReply reply;
  if (web_) {
    reply.headers = WebHeaders(*web_, initial);
  } else {
    AddMetadata(initial, &reply);
    reply.headers.emplace_back("content-type", type);
  }
  reply.more = true;
  return reply;
}

absl::StatusOr<RawReply> AnswerForm::Part(std::string_view message) const {
  if (web_) return RawReply{{}, WebPart(*web_, message)};
  if (raw()) return Transcoder::Raw(message);
  const absl::StatusOr<std::string> json = transcoder_->Reply(*route_, message);
  if (!json.ok()) return json.status();
  return RawReply{std::string(kJsonLines), Join("{\"result\":", *json, "}\n")};
}

std::string AnswerForm::End(const absl::Status& status, const Metadata& trailing) const {
  if (web_) return WebEnd(*web_, status, trailing);
  return status.ok() ? std::string() : Join("{\"error\":", transcoder_->Error(status), "}\n");
}

}  // namespace curtail::gateway::internal
