// SPDX-License-Identifier: Apache-2.0
//
// Header blocks that arrive: requests, replies and trailers.

#include <algorithm>
#include <charconv>
#include <utility>

#include "curtail/base/strings.h"
#include "curtail/wire/internal/compression.h"
#include "curtail/wire/internal/grpc_status.h"
#include "curtail/wire/internal/session_impl.h"
#include "curtail/wire/internal/status_details.h"

namespace curtail::wire {

using internal::ErrorCode;
using internal::Field;
using internal::FrameHeader;
using internal::HeaderField;
using internal::kEndHeaders;
using internal::kEndStream;
using internal::kPriorityFields;

namespace {

// The bytes that RFC 9113 counts for a field on top of its name and value.
constexpr size_t kFieldOverhead = 32;
// A header block is taken whole up to this size, or twice the limit for its fields, so that one with too many fields
// ends its call only. A longer one ends the connection.
constexpr size_t kMaxBlockBytes = 256u << 10;
constexpr uint32_t kMaxContinuations = 64;
constexpr size_t kKeptBlock = 4u << 10;

constexpr uint16_t Bit(Field field) { return static_cast<uint16_t>(1u << static_cast<unsigned>(field)); }

// application/grpc and application/grpc+proto, with or without parameters. Others hold messages of other forms.
bool IsGrpcContent(std::string_view type) {
  constexpr std::string_view kType = "application/grpc";
  constexpr std::string_view kProto = "+proto";
  if (!type.starts_with(kType)) return false;
  type.remove_prefix(kType.size());
  if (type.starts_with(kProto)) type.remove_prefix(kProto.size());
  return type.empty() || type[0] == ';';
}

// Digits that fit, or nothing.
std::optional<int64_t> ParseLength(std::string_view text) {
  constexpr size_t kMaxDigits = 32;  // with zeros in front
  if (text.size() > kMaxDigits) return std::nullopt;
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

// Three digits, or 0.
int16_t ParseHttpStatus(std::string_view text) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  if (text.size() != 3 || !std::all_of(text.begin(), text.end(), is_digit)) return 0;
  return static_cast<int16_t>((text[0] - '0') * 100 + (text[1] - '0') * 10 + (text[2] - '0'));
}

}  // namespace

// ----- frames ---------------------------------------------------------------------------------------------

void Session::Impl::OnHeaders(const FrameHeader& header, std::string_view payload) {
  if (header.stream % 2 == 0) return ConnectionError(ErrorCode::kProtocolError, "HEADERS on a wrong stream");
  if (is_client() && Idle(header.stream)) {
    return ConnectionError(ErrorCode::kProtocolError, "HEADERS without a request");
  }
  if (!Unpad(header, &payload)) return ConnectionError(ErrorCode::kProtocolError, "padding exceeds HEADERS");
  if (header.Has(kPriorityFields)) {
    constexpr size_t kPriorityBytes = 5;
    if (payload.size() < kPriorityBytes)
      return ConnectionError(ErrorCode::kFrameSizeError, "HEADERS too short");
    payload.remove_prefix(kPriorityBytes);
  }
  if (header.Has(kEndHeaders)) return OnHeaderBlock(header.stream, header.Has(kEndStream), payload);
  open_block_ = header;
  block_.assign(payload);
  continuations_ = 0;
}

void Session::Impl::OnContinuation(const FrameHeader& header, std::string_view payload) {
  if (!open_block_) return ConnectionError(ErrorCode::kProtocolError, "CONTINUATION of nothing");
  const size_t limit = std::max<size_t>(kMaxBlockBytes, size_t{2} * options_.max_header_bytes);
  if (block_.size() + payload.size() > limit || ++continuations_ > kMaxContinuations) {
    return LimitReached(Limit::kHeaderBlock, Join("a header block has more than ", limit, " bytes or ",
                                                  kMaxContinuations, " frames"));
  }
  block_.append(payload);
  if (!header.Has(kEndHeaders)) return;
  const bool end_stream = open_block_->Has(kEndStream);
  open_block_.reset();
  ++inputs_;
  OnHeaderBlock(header.stream, end_stream, block_);
  if (block_.capacity() > kKeptBlock) std::string().swap(block_);
}

void Session::Impl::OnHeaderBlock(StreamId id, bool end_stream, std::string_view block) {
  Stream* s = streams_.Find(id);
  if (s != nullptr && s->waiting)
    return ConnectionError(ErrorCode::kProtocolError, "HEADERS without a request");
  const bool opens = !is_client() && id > last_opened_;
  const bool wanted = s != nullptr || (opens && !last_accepted_);
  if (!Decode(block, wanted))
    return ConnectionError(ErrorCode::kCompressionError, "cannot decode a header block");
  if (opens) {
    skipped_ids_ |= id > last_opened_ + 2;
    last_opened_ = id;
  }
  if (!wanted && opens) return;  // beyond our GOAWAY, which says that it was not looked at
  if (!wanted) return RefuseClosedHeaders(id);
  if (s == nullptr) return OnRequestHeaders(id, end_stream);
  if (is_client()) return OnReplyHeaders(s, end_stream);
  OnRequestTrailers(s, end_stream);
}

// ----- fields ---------------------------------------------------------------------------------------------

// Every block is decoded, wanted or not: the table has to keep step with the peer's.
bool Session::Impl::Decode(std::string_view block, bool wanted) {
  fields_ = ReceivedFields();
  head_.path.clear();
  head_.timeout.reset();
  head_.metadata.Clear();
  if (!wanted) return decoder_.Decode(block, [](const HeaderField&) {});
  return decoder_.Decode(block, [this](const HeaderField& field) { OnField(field); });
}

void Session::Impl::OnField(const HeaderField& field) {
  if (fields_.too_long || fields_.bad_http) return;
  fields_.bytes += static_cast<uint32_t>(field.name.size() + field.value.size() + kFieldOverhead);
  if (fields_.bytes > options_.max_header_bytes) {
    fields_.too_long = true;
    return;
  }
  if (!field.valid) {
    fields_.bad_http = true;
    return;
  }
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
      return OnContentLength(field.value);
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

void Session::Impl::OnContentLength(std::string_view value) {
  const std::optional<int64_t> length = ParseLength(value);
  if (!length || (fields_.has_length && fields_.content_length != *length)) fields_.bad_http = true;
  fields_.has_length = true;
  fields_.content_length = length.value_or(0);
}

void Session::Impl::OnPseudoField(const HeaderField& field) {
  const uint16_t bit = Bit(field.field);
  if (fields_.past_pseudo || (fields_.pseudo & bit) != 0) fields_.bad_http = true;
  fields_.pseudo |= bit;
  switch (field.field) {
    case Field::kPath:
      head_.path.assign(field.value);
      return;
    case Field::kMethod:
      fields_.is_post = field.value == "POST";
      return;
    case Field::kStatus:
      fields_.http_status = ParseHttpStatus(field.value);
      return;
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

void Session::Impl::SetContentLength(Stream* s) const {
  s->content_left = fields_.has_length ? fields_.content_length : -1;
  s->unusual = true;
}

// ----- server ---------------------------------------------------------------------------------------------

bool Session::Impl::RequestIsWellFormed() const {
  constexpr uint16_t kNeeded = Bit(Field::kMethod) | Bit(Field::kScheme) | Bit(Field::kPath);
  if (fields_.bad_http) return false;
  if (fields_.too_long) return true;  // its fields were not all looked at
  return (fields_.pseudo & kNeeded) == kNeeded && (fields_.pseudo & Bit(Field::kStatus)) == 0 &&
         !head_.path.empty();
}

void Session::Impl::OnRequestHeaders(StreamId id, bool end_stream) {
  const bool refused = streams_.size() + leaving_.size() >= options_.max_concurrent_streams;
  if (refused || !RequestIsWellFormed() || (end_stream && fields_.content_length > 0)) {
    if (refused) events_->OnLimit(Limit::kStreams);
    RefuseStream(id, refused ? ErrorCode::kRefusedStream : ErrorCode::kProtocolError);
    if (!refused) Spend(&malformed_, Limit::kMalformed);
    return;
  }
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
  Stream* s = NewStream(id);
  s->got_end = end_stream;
  if (fields_.has_length) SetContentLength(s);
  s->encoding = s->send_encoding = fields_.encoding;
  s->known = true;
  ++open_streams_;
  s->tag = events_->OnRequest(id, std::move(head_));
  if (s->tag != nullptr && !s->done) head_bytes_ += s->head_bytes = fields_.bytes;
  if (end_stream && !s->closed && broken_.ok()) OnRequestEnd(s);
}

void Session::Impl::OnRequestTrailers(Stream* s, bool end_stream) {
  if (s->got_end) return StreamError(s, ErrorCode::kStreamClosed);
  if (fields_.bad_http || fields_.pseudo != 0 || !end_stream || !CountContent(s, 0, true))
    return StreamError(s, ErrorCode::kProtocolError);
  if (s->http_status != 0) return AnswerHttp(s);
  OnRequestEnd(s);
}

void Session::Impl::RefuseHttp(StreamId id, bool end_stream, int16_t http_status) {
  Stream* s = NewStream(id);
  s->got_end = end_stream;
  SetContentLength(s);
  s->http_status = http_status;
  if (end_stream) AnswerHttp(s);
}

void Session::Impl::AnswerHttp(Stream* s) {
  s->got_end = true;
  const size_t begin = BeginBlock();
  encoder_.Encode(":status", Join(s->http_status), internal::HpackEncoder::Indexing::kNone, &out_);
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
  const bool has_status = (fields_.pseudo & Bit(Field::kStatus)) != 0;
  const bool bad_status = trailers ? fields_.pseudo != 0 : !has_status || fields_.http_status == 0;
  if (fields_.bad_http || (!fields_.too_long && bad_status) || (trailers && !end_stream)) {
    return StreamError(s, s->got_end ? ErrorCode::kStreamClosed : ErrorCode::kProtocolError);
  }
  if (fields_.too_long) {
    return Fail(s, absl::ResourceExhaustedError(
                       Join("reply header fields exceed ", options_.max_header_bytes, " bytes")));
  }
  if (fields_.malformed) return Fail(s, absl::InternalError("malformed binary metadata in the reply"));
  if (!trailers) {
    s->http_status = fields_.http_status;
    s->unknown_encoding = fields_.unknown_encoding;
    s->encoding = fields_.encoding;
    if (fields_.has_length) SetContentLength(s);
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
  if (fields_.http_status < 200) return;  // 1xx: the head is yet to come
  s->got_head = true;
  if (fields_.http_status != 200 || !fields_.grpc_content) {
    return Fail(s, internal::StatusFromHttp(fields_.http_status));
  }
  events_->OnResponseHead(s->id, s->tag, std::move(head_.metadata));
}

}  // namespace curtail::wire
