// SPDX-License-Identifier: Apache-2.0
#include "curtail/gateway/internal/answer_form.h"

#include "curtail/base/strings.h"
#include "curtail/wire/metadata.h"

namespace curtail::gateway::internal {
namespace {

constexpr std::string_view kContentRange = "content-range", kGone = "gone";

// `raw`: headers of ranges keep their names, and a part of the bytes is 206.
void AddMetadata(const Metadata& metadata, bool raw, HttpReply* reply) {
  for (const auto& [key, value] : metadata) {
    const bool of_range = raw && (key == kContentRange || key == "accept-ranges");
    reply->headers.emplace_back(of_range ? std::string(key) : Join(kMetadataPrefix, key),
                                key.ends_with("-bin") ? wire::Base64Encode(value) : std::string(value));
    if (of_range && key == kContentRange && reply->status == 200) reply->status = 206;
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
  const bool raw = route_ != nullptr && route_->raw_reply;
  const bool ranged = metadata.initial.Find(kContentRange) || metadata.trailing.Find(kContentRange);
  if (raw && ranged && status.code() == absl::StatusCode::kOutOfRange) reply.status = 416;
  const bool gone = metadata.initial.Find(kGone) || metadata.trailing.Find(kGone);
  if (gone && status.code() == absl::StatusCode::kNotFound) reply.status = 410;
  AddMetadata(metadata.initial, raw, &reply);
  AddMetadata(metadata.trailing, raw, &reply);
  reply.headers.emplace_back("content-type", body.ok() ? std::move(body->type) : std::string(kJson));
  reply.body = body.ok() ? std::move(body->bytes) : transcoder_->Error(body.status());
  return reply;
}

HttpReply AnswerForm::WrongVerb(std::string_view verbs) const {
  HttpReply reply = Whole(absl::UnimplementedError(Join("this path is for ", verbs)), {}, {});
  reply.status = 405;
  reply.headers.emplace_back("allow", std::string(verbs));
  return reply;
}

HttpReply AnswerForm::TooMany(Nanos wait) const {
  HttpReply reply =
      Whole(absl::ResourceExhaustedError("more calls a second than this gateway hands on; try again later"),
            {}, {});
  reply.headers.emplace_back("retry-after", Join(std::chrono::ceil<std::chrono::seconds>(wait).count()));
  return reply;
}

HttpReply AnswerForm::Head(const Metadata& initial, std::string_view type) const {
  HttpReply reply;
  if (web_) {
    reply.headers = WebHeaders(*web_, initial);
  } else {
    AddMetadata(initial, raw(), &reply);
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
