// SPDX-License-Identifier: Apache-2.0
//
// The receiving half of a Session: header fields and DATA, as gRPC's requests, replies and messages.

#include <algorithm>
#include <utility>

#include "curtail/base/strings.h"
#include "curtail/wire/internal/compression.h"
#include "curtail/wire/internal/grpc_status.h"
#include "curtail/wire/internal/session_impl.h"
#include "curtail/wire/internal/status_details.h"

namespace curtail::wire {

using internal::ErrorCode;
using internal::Field;
using internal::HeaderField;
using internal::HpackEncoder;
using internal::MessageReader;

namespace {

// Texts become ten times as short at most, as a rule; others inflate for free to so many bytes a byte.
constexpr size_t kInflatesTo = 8;

// application/grpc and application/grpc+proto, with or without parameters. Others hold messages of other forms.
bool IsGrpcContent(std::string_view type) {
  constexpr std::string_view kType = "application/grpc";
  constexpr std::string_view kProto = "+proto";
  if (!type.starts_with(kType)) return false;
  type.remove_prefix(kType.size());
  if (type.starts_with(kProto)) type.remove_prefix(kProto.size());
  return type.empty() || type[0] == ';';
}

}  // namespace

// ----- fields ---------------------------------------------------------------------------------------------

void Session::Impl::OnField(const HeaderField& field) {
  if (!fields_.Count(field, options_.max_header_bytes)) return;
  if (field.name.front() == ':') return OnPseudoField(field);
  fields_.past_pseudo = true;
  switch (field.field) {
    case Field::kContentType:
      fields_.grpc_content = IsGrpcContent(field.value);
      return;
    case Field::kTe:
      fields_.bad_http = field.value != "trailers";
      return;
    case Field::kGrpcTimeout:
      head_.timeout = ParseTimeout(field.value);
      if (!head_.timeout) fields_.malformed = true;
      return;
    case Field::kGrpcStatus:
      fields_.has_grpc_status = true;
      grpc_status_.assign(field.value);
      return;
    case Field::kGrpcMessage:
      fields_.has_grpc_message = true;
      grpc_message_.assign(field.value);
      return;
    case Field::kGrpcEncoding:
      OnEncoding(field.value);
      return;
    case Field::kContentLength:
      return fields_.OnContentLength(field.value);
    case Field::kGrpcDetails:
      fields_.has_details = true;
      details_.assign(field.value);
      return;
    case Field::kConnectionSpecific:
      fields_.bad_http = true;
      return;
    case Field::kOther:
      return OnMetadata(field);
    default:
      return;  // HTTP's and gRPC's own
  }
}

void Session::Impl::OnEncoding(std::string_view name) {
  const std::optional<Encoding> encoding = internal::EncodingOf(name);
  fields_.unknown_encoding = !encoding;
  fields_.encoding = encoding.value_or(Encoding::kIdentity);
}

void Session::Impl::OnPseudoField(const HeaderField& field) {
  fields_.CountPseudo(field.field);
  switch (field.field) {
    case Field::kPath:
      if (field.value.empty()) fields_.bad_http = true;
      head_.path.assign(field.value);
      return;
    case Field::kMethod:
      fields_.is_post = field.value == "POST";
      return;
    case Field::kStatus:
      return fields_.OnStatus(field.value);
    case Field::kScheme:
    case Field::kAuthority:
      return;
    default:
      fields_.bad_http = true;
  }
}

void Session::Impl::OnMetadata(const HeaderField& field) {
  if (!field.name.ends_with("-bin")) {
    head_.metadata.AddLowerCase(field.name, field.value);
    return;
  }
  const internal::BinaryFields::Values& values = binary_fields_.Decode(field, decoder_.table_entries());
  fields_.joined += values.joined;
  if (fields_.joined > internal::kMaxJoined) {
    fields_.too_long = true;
    return;
  }
  head_.metadata.Append(values.entries);
  fields_.malformed |= values.malformed;
}

void Session::Impl::OnFields(Stream* s, StreamId id, bool end_stream) {
  if (s == nullptr) return OnRequestHeaders(id, end_stream);
  if (is_client()) return OnReplyHeaders(s, end_stream);
  OnRequestTrailers(s, end_stream);
}

// ----- server ---------------------------------------------------------------------------------------------

void Session::Impl::OnRequestHeaders(StreamId id, bool end_stream) {
  const bool malformed = !fields_.IsRequest(end_stream);
  if (malformed || !HasRoom()) return RefuseRequest(id, malformed);
  if (fields_.too_long) {
    events_->OnLimit(Limit::kHeaderFields);
    if (!Spend(&resets_, Limit::kResets)) return;
    return Refuse(id, end_stream,
                  absl::ResourceExhaustedError(
                      Join("request header fields exceed ", options_.max_header_bytes, " bytes")));
  }
  if (!fields_.is_post) return RefuseHttp(id, end_stream, 405);
  if (!fields_.grpc_content) return RefuseHttp(id, end_stream, 415);
  if (fields_.malformed) {
    if (!Spend(&malformed_, Limit::kMalformed)) return;
    return Refuse(id, end_stream, absl::InternalError("malformed grpc-timeout or binary metadata"));
  }
  if (fields_.unknown_encoding) {
    return Refuse(id, end_stream, absl::UnimplementedError("the request's grpc-encoding is not supported"),
                  /*encoding=*/true);
  }
  Stream* const s = AcceptStream(id);
  s->got_end = end_stream;
  if (fields_.has_length) SetContentLength(s, fields_);
  s->encoding = s->send_encoding = fields_.encoding;
  Begin(s);
  if (end_stream && !s->closed && broken_.ok()) OnRequestEnd(s);
}

void Session::Impl::Begin(Stream* s) {
  s->tag = events_->OnRequest(s->id, std::move(head_));
  if (s->tag != nullptr && !s->done) head_bytes_ += s->head_bytes = fields_.bytes;
}

void Session::Impl::OnRequestTrailers(Stream* s, bool end_stream) {
  if (s->got_end) return StreamError(s, ErrorCode::kStreamClosed);
  if (!fields_.IsTrailers(end_stream) || !CountContent(s, 0, true))
    return StreamError(s, ErrorCode::kProtocolError);
  if (s->http_status != 0) return AnswerHttp(s);
  OnRequestEnd(s);
}

void Session::Impl::RefuseHttp(StreamId id, bool end_stream, int16_t http_status) {
  Stream* s = NewStream(id);
  s->got_end = end_stream;
  SetContentLength(s, fields_);
  s->http_status = http_status;
  if (end_stream) AnswerHttp(s);
}

void Session::Impl::AnswerHttp(Stream* s) {
  s->got_end = true;
  const size_t begin = BeginBlock();
  encoder_.Encode(":status", Join(s->http_status), HpackEncoder::Indexing::kNone, &out_);
  EndBlock(begin, s->id, true);
  React();
  Leave(s);
}

void Session::Impl::Refuse(StreamId id, bool end_stream, absl::Status status, bool encoding) {
  Stream* s = NewStream(id);
  s->refuse_compressed = encoding;
  s->got_end = end_stream;
  AppendTrailers(s, status, {});
  React();
  Leave(s);
}

// ----- client ---------------------------------------------------------------------------------------------

void Session::Impl::OnReplyHeaders(Stream* s, bool end_stream) {
  const bool trailers = s->got_head;
  if (!(trailers ? fields_.IsTrailers(end_stream) : fields_.IsReply())) {
    return StreamError(s, s->got_end ? ErrorCode::kStreamClosed : ErrorCode::kProtocolError);
  }
  if (fields_.too_long) {
    return Fail(s, absl::ResourceExhaustedError(
                       Join("reply header fields exceed ", options_.max_header_bytes, " bytes")));
  }
  if (fields_.malformed) return Fail(s, absl::InternalError("malformed binary metadata in the reply"));
  if (!trailers) {
    s->http_status = fields_.status;
    s->unknown_encoding = fields_.unknown_encoding;
    s->encoding = fields_.encoding;
    if (fields_.has_length) SetContentLength(s, fields_);
  }
  if (end_stream && s->unusual && !CountContent(s, 0, true)) {
    return StreamError(s, ErrorCode::kProtocolError);
  }
  if (end_stream) {
    absl::Status status =
        fields_.has_grpc_status
            ? internal::StatusFromFields(grpc_status_,
                                         fields_.has_grpc_message ? std::string_view(grpc_message_) : "")
            : internal::StatusFromHttp(s->http_status);
    if (fields_.has_details && !status.ok()) internal::DecodeDetails(details_, &status);
    return OnReplyEnd(s, std::move(status), std::move(head_.metadata));
  }
  if (fields_.status < 200) return;  // 1xx: the head is yet to come
  s->got_head = true;
  if (fields_.status != 200 || !fields_.grpc_content) {
    return Fail(s, internal::StatusFromHttp(fields_.status));
  }
  events_->OnResponseHead(s->id, s->tag, std::move(head_.metadata));
}

// ----- messages -------------------------------------------------------------------------------------------

bool Session::Impl::TakeUnusual(Stream* s, size_t bytes, bool end) {
  if (!CountContent(s, bytes, end)) {
    StreamError(s, ErrorCode::kProtocolError);
    return false;
  }
  if (is_client() || s->http_status == 0) return true;
  if (end) AnswerHttp(s);
  return false;
}

[[gnu::always_inline]] inline void Session::Impl::OnMessageBytes(Stream* s, std::string_view* bytes) {
  while (!s->done && !s->closed) {
    const size_t held = s->reader.held_bytes();
    const MessageReader::Result result = s->reader.Next(bytes, MessageLimit(s), &message_);
    held_bytes_ += s->reader.held_bytes() - held;
    switch (result) {
      case MessageReader::Result::kNeedMore:
        if (held_bytes_ <= held_limit_) return;
        if (held_bytes_ <= held_alone_limit_ && held_bytes_ == s->reader.held_bytes()) return;
        events_->OnLimit(Limit::kHeld);
        return Fail(s, absl::ResourceExhaustedError("too many bytes of unfinished messages"));
      case MessageReader::Result::kMessage:
        if (s->reader.compressed()) [[unlikely]] {
          OnCompressedMessage(s);
          if (stalled()) return;
          break;
        }
        GiveMessage(s);
        break;
      case MessageReader::Result::kTooLong:
        events_->OnLimit(Limit::kMessage);
        return Fail(s, absl::ResourceExhaustedError(Join("message exceeds ", MessageLimit(s), " bytes")));
      case MessageReader::Result::kMalformed:
        return Fail(s, absl::InternalError("malformed message prefix"));
    }
  }
}

void Session::Impl::OnContent(Stream* s, std::string_view content, bool end) {
  if (s->unusual && !TakeUnusual(s, content.size(), end)) [[unlikely]]
    return;
  TakeContent(s, content, end);
}

[[gnu::always_inline]] inline void Session::Impl::TakeContent(Stream* s, std::string_view content, bool end) {
  OnMessageBytes(s, &content);
  if (stalled()) [[unlikely]] {
    stalled_content_.assign(content);
    stalled_end_ = end;
    return;
  }
  if (s->closed || !broken_.ok() || !end) return;
  if (!is_client()) return OnRequestEnd(s);
  OnReplyEnd(s, internal::StatusFromHttp(s->http_status));
}

void Session::Impl::OnCompressedMessage(Stream* s) {
  if (s->encoding == Encoding::kIdentity) {
    return Fail(
        s, absl::InternalError(s->unknown_encoding ? "the messages have an encoding that is not supported"
                                                   : "a compressed message without a grpc-encoding"));
  }
  inflater_ = internal::MakeInflater(s->encoding, message_, MessageLimit(s), &inflated_);
  stalled_stream_ = s->id;
  Inflate(s);
}

void Session::Impl::Inflate(Stream* s) {
  using internal::Inflated;
  const size_t earned = kInflatesTo * message_.size();
  Inflated result = Inflated::kMalformed;
  if (inflater_ != nullptr) {
    const size_t before = inflater_->done();
    const size_t free = earned - std::min(before, earned);
    result = inflater_->Step(inflate_left_ > SIZE_MAX - free ? SIZE_MAX : inflate_left_ + free);
    const size_t inflated = inflater_->done() - before;
    ChargeInflating(inflated - std::min(inflated, free));
  }
  if (result == Inflated::kMore) return;
  inflater_.reset();
  if (result == Inflated::kTooLong) {
    Fail(s, absl::ResourceExhaustedError(Join("inflated message exceeds ", MessageLimit(s), " bytes")));
  } else if (result == Inflated::kMalformed) {
    Fail(s, absl::InternalError("malformed compressed message"));
  } else {
    if (message_.capacity() > kKeptMessage) std::string().swap(message_);
    events_->OnMessage(s->id, s->tag, std::move(inflated_));
  }
  ShrinkMessages();
}

// A peer that names each entry of the table once in a block pays nothing.
void Session::Impl::ChargeCopies(size_t block) {
  const size_t free = internal::kDefaultTableBytes + kInflatesTo * block;
  const size_t bytes = head_.metadata.bytes();
  if (bytes <= free) return;
  stalled_stream_ = 0;  // no message waits
  ChargeInflating(bytes - free);
}

void Session::Impl::ChargeInflating(size_t bytes) {
  inflate_left_ -= std::min(inflate_left_, bytes);
  if (inflate_left_ > 0) return;
  events_->OnLimit(Limit::kInflating);
  Stall();
}

void Session::Impl::ShrinkMessages() {
  if (message_.capacity() > kKeptMessage) std::string().swap(message_);
  if (inflated_.capacity() > kKeptMessage) std::string().swap(inflated_);
}

void Session::Impl::FailCall(Stream* s, const absl::Status& status) {
  if (inflater_ != nullptr && s->id == stalled_stream_) {  // its memory is why
    inflater_.reset();
    ShrinkMessages();
  }
  Fail(s, status);
}

absl::Status Session::Impl::GoOn() {
  if (!stalled() || !broken_.ok()) return broken_;
  inflate_left_ = options_.inflate_bytes;
  Resume();
  Stream* const s = streams_.Find(stalled_stream_);  // its owner may have ended it
  if (inflater_ != nullptr) {
    if (s != nullptr && !s->done) Inflate(s);
    if (stalled()) return broken_;
    inflater_.reset();
    ShrinkMessages();
  }
  const std::string content = std::exchange(stalled_content_, {});
  if (s != nullptr && !s->closed && broken_.ok()) TakeContent(s, content, stalled_end_);
  Reap();
  return stalled() ? broken_ : ReceiveWaiting();
}

void Session::Impl::OnRequestEnd(Stream* s) {
  s->got_end = true;
  if (!s->reader.AtBoundary()) return Fail(s, absl::InternalError("the request ends inside a message"));
  events_->OnRequestEnd(s->id, s->tag);
}

void Session::Impl::OnReplyEnd(Stream* s, absl::Status&& status, Metadata&& trailing) {
  s->got_end = true;
  if (status.ok() && !s->reader.AtBoundary()) status = absl::InternalError("the reply ends inside a message");
  // Nobody will read the rest of the request.
  if (!s->sent_end) AppendReset(s->id, ErrorCode::kNoError);
  Close(s);
  Finish(s, std::move(status), std::move(trailing));
}

void Session::Impl::Fail(Stream* s, absl::Status status) {
  if (is_client() || s->queue.InsideMessage()) {
    const ErrorCode code = is_client() ? ErrorCode::kCancel : internal::ResetOf(status);
    return Reset(s, code, std::move(status));
  }
  queued_bytes_ -= DropQueue(s);
  AppendTrailers(s, status, {});
  React();
  Leave(s);
  Finish(s, std::move(status));
}

}  // namespace curtail::wire
