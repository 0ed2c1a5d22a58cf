// SPDX-License-Identifier: Apache-2.0
//
// The receiving half of a Session: header fields and DATA, as gRPC's requests, replies and messages.

#include <algorithm>
#include <cstring>
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
using internal::FrameType;
using internal::HeaderField;
using internal::HpackDecoder;
using internal::HpackEncoder;
using internal::kFrameHeaderBytes;
using internal::MessageReader;

namespace {

// Message buffers larger than this are not kept.
constexpr size_t kKeptMessage = 64u << 10;
// Texts become ten times as short at most, as a rule; others inflate for free to so many bytes a byte.
constexpr size_t kInflatesTo = 8;

// Header blocks, and texts in them, that are longer are not kept.
constexpr size_t kMaxKnownBlock = 64;
constexpr size_t kMaxKnownText = 256;

// application/grpc and application/grpc+proto, with or without parameters. Others hold messages of other forms.
bool IsGrpcContent(std::string_view type) {
  constexpr std::string_view kType = "application/grpc";
  constexpr std::string_view kProto = "+proto";
  if (!type.starts_with(kType)) return false;
  type.remove_prefix(kType.size());
  if (type.starts_with(kProto)) type.remove_prefix(kProto.size());
  return type.empty() || type[0] == ';';
}

// As ==, of short texts that mostly are the same.
bool Same(std::string_view a, std::string_view b) {
  const size_t size = a.size();
  if (size != b.size()) return false;
  if (size > 16 || size < 8) {
    if (size > 16) return a == b;
    bool same = true;
    for (size_t i = 0; i < size; ++i) same &= a[i] == b[i];
    return same;
  }
  const auto word = [](const char* at) {
    uint64_t value;
    std::memcpy(&value, at, sizeof value);
    return value;
  };
  return word(a.data()) == word(b.data()) && word(a.data() + size - 8) == word(b.data() + size - 8);
}

}  // namespace

// ----- fields ---------------------------------------------------------------------------------------------

// Blocks repeat: requests of one method, heads and trailers of replies. The front of a block that refers to the
// decoder's tables alone means what it meant as long as they have not changed; so does the whole block, if it
// changed none.
bool Session::Impl::DecodeFields(std::string_view block) {
  head_.metadata.Clear();
  if (known_blocks_ == nullptr || block.empty()) [[unlikely]]
    return DecodeNewFields(block);
  const KnownBlock& known = KnownBlockFor(block);
  if (known.generation != decoder_.generation()) [[unlikely]]
    return DecodeNewFields(block);
  if (Same(known.bytes, block)) [[likely]] {
    Recall(known, /*whole=*/true);
    return true;
  }
  const size_t front = known.front;
  if (front >= block.size() || std::memcmp(block.data(), known.bytes.data(), front) != 0 ||
      (block[front] & 0x80) != 0) {
    return DecodeNewFields(block);
  }
  Recall(known, /*whole=*/false);
  return DecodeRest(block, front);
}

bool Session::Impl::DecodeNewFields(std::string_view block) {
  const auto sink = [this](const HeaderField& field) { OnField(field); };
  fields_ = ReceivedFields();
  head_.path.clear();
  head_.timeout.reset();
  const size_t front = HpackDecoder::IndexedBytes(block);
  if (front == 0 || block.size() > kMaxKnownBlock) return decoder_.Decode(block, sink);
  if (known_blocks_ == nullptr) known_blocks_ = std::make_unique<std::array<KnownBlock, 4>>();
  return decoder_.Decode(block.substr(0, front), sink) && DecodeRest(block, front);
}

bool Session::Impl::DecodeRest(std::string_view block, size_t front) {
  const ReceivedFields front_fields = fields_;
  const std::optional<Nanos> front_timeout = head_.timeout;
  const uint64_t generation = decoder_.generation();
  if (!decoder_.DecodeRest(block.substr(front), [this](const HeaderField& field) { OnField(field); }))
    return false;
  KnownBlock& known = KnownBlockFor(block);
  known.generation.reset();
  // Another status may follow the one in front.
  if (decoder_.generation() != generation || (front_fields.has_grpc_status && front < block.size()))
    return true;
  if (!IsWorthKnowing(block)) return true;
  known.front = front;
  known.front_fields = front_fields;
  known.front_timeout = front_timeout;
  Remember(block, &known);
  known.generation = generation;
  return true;
}

bool Session::Impl::IsWorthKnowing(std::string_view block) const {
  if (fields_.bad_http || fields_.too_long || fields_.malformed) return false;
  if (fields_.has_grpc_message || fields_.has_details || !head_.metadata.empty()) return false;
  return block.size() <= kMaxKnownBlock && head_.path.size() <= kMaxKnownText &&
         grpc_status_.size() <= kMaxKnownText;
}

// By the bytes in which the heads of two methods, or the head and the trailers of a reply, mostly differ.
Session::Impl::KnownBlock& Session::Impl::KnownBlockFor(std::string_view block) const {
  const auto byte = [block](size_t i) { return static_cast<uint8_t>(block[std::min(i, block.size() - 1)]); };
  return (*known_blocks_)[(byte(0) + byte(2)) % known_blocks_->size()];
}

void Session::Impl::Recall(const KnownBlock& known, bool whole) {
  fields_ = whole ? known.fields : known.front_fields;
  head_.timeout = whole ? known.timeout : known.front_timeout;
  if ((fields_.pseudo & ReceivedFields::Bit(Field::kPath)) != 0) {
    head_.path.assign(known.path);
  } else {
    head_.path.clear();
  }
  if (fields_.has_grpc_status) grpc_status_.assign(known.status);
}

void Session::Impl::Remember(std::string_view block, KnownBlock* known) const {
  known->bytes.assign(block);
  known->fields = fields_;
  known->path.assign(head_.path);
  known->status.assign(grpc_status_);
  known->timeout = head_.timeout;
  const bool plain = fields_.grpc_content && !fields_.has_length && !fields_.unknown_encoding &&
                     fields_.encoding == Encoding::kIdentity;
  known->kind = KnownBlock::kOther;
  if (!is_client()) {
    if (plain && fields_.IsRequest(/*end_stream=*/false) && fields_.is_post)
      known->kind = KnownBlock::kPlainRequest;
  } else if (fields_.IsTrailers(/*end_stream=*/true)) {
    if (fields_.has_grpc_status && grpc_status_ == "0") known->kind = KnownBlock::kOkTrailers;
  } else if (plain && fields_.IsReply() && fields_.status == 200) {
    known->kind = KnownBlock::kPlainHead;
  }
}

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

const Session::Impl::KnownBlock* Session::Impl::KnownHeaders(const FrameHeader& header,
                                                             std::string_view bytes, uint8_t flags) const {
  if (header.type != FrameType::kHeaders || header.flags != flags || header.length == 0) return nullptr;
  if (bytes.size() - kFrameHeaderBytes < header.length) return nullptr;
  const std::string_view block = bytes.substr(kFrameHeaderBytes, header.length);
  const KnownBlock& known = KnownBlockFor(block);
  return known.generation == decoder_.generation() && Same(known.bytes, block) ? &known : nullptr;
}

size_t Session::Impl::TakeWhole(const FrameHeader& header, std::string_view bytes) {
  if (known_blocks_ == nullptr) return 0;
  const KnownBlock* const head = KnownHeaders(header, bytes, internal::kEndHeaders);
  if (head == nullptr) return 0;
  if (head->kind == KnownBlock::kPlainRequest) return TakeRequest(header, bytes, *head);
  return head->kind == KnownBlock::kPlainHead ? TakeReply(header, bytes) : 0;
}

// The DATA frame at the front of `bytes`, if it is whole, and of the stream; else one of stream 0.
FrameHeader Session::Impl::DataOf(StreamId stream, std::string_view bytes, uint8_t flags) {
  if (bytes.size() < kFrameHeaderBytes) return {};
  const FrameHeader data = FrameHeader::Parse(bytes.data());
  const bool fits = data.type == FrameType::kData && data.flags == flags && data.stream == stream &&
                    bytes.size() - kFrameHeaderBytes >= data.length;
  return fits ? data : FrameHeader();
}

// Head and one message, which mostly come together.
size_t Session::Impl::TakeRequest(const FrameHeader& header, std::string_view bytes, const KnownBlock& head) {
  const size_t head_end = kFrameHeaderBytes + header.length;
  const std::string_view rest = bytes.substr(head_end);
  const FrameHeader data = DataOf(header.stream, rest, internal::kEndStream);
  if (data.stream == 0 || !MayOpen(header.stream)) return 0;
  const std::string_view message = rest.substr(kFrameHeaderBytes, data.length);
  if (!MessageReader::IsWhole(message, options_.max_message_bytes) || !CountLast(0, data.length)) return 0;
  CountFrames(2);
  NoteOpened(header.stream);
  Recall(head, /*whole=*/true);
  head_.metadata.Clear();
  Stream* const s = AcceptStream(header.stream);
  Begin(s);
  if (!s->closed && !s->done) {
    AssignBytes(message_, message.substr(internal::kPrefixBytes));
    events_->OnMessage(s->id, s->tag, std::move(message_));
    if (message_.capacity() > kKeptMessage) std::string().swap(message_);
  }
  if (!s->closed && !s->done) OnRequestEnd(s);
  return head_end + kFrameHeaderBytes + data.length;
}

// Head, one message, trailers.
size_t Session::Impl::TakeReply(const FrameHeader& header, std::string_view bytes) {
  const size_t head_end = kFrameHeaderBytes + header.length;
  std::string_view rest = bytes.substr(head_end);
  const FrameHeader data = DataOf(header.stream, rest, 0);
  const size_t data_end = kFrameHeaderBytes + data.length;
  if (data.stream == 0 || rest.size() < data_end + kFrameHeaderBytes) return 0;
  const std::string_view message = rest.substr(kFrameHeaderBytes, data.length);
  rest.remove_prefix(data_end);
  const FrameHeader last = FrameHeader::Parse(rest.data());
  const KnownBlock* const trailers = KnownHeaders(last, rest, internal::kEndHeaders | internal::kEndStream);
  if (trailers == nullptr || trailers->kind != KnownBlock::kOkTrailers || last.stream != header.stream)
    return 0;
  Stream* const s = streams_.Find(header.stream);
  if (s == nullptr || s->waiting || s->got_head || s->got_end || s->unusual || s->held) return 0;
  if (!MessageReader::IsWhole(message, MessageLimit(s)) || !CountLast(s->uncredited, data.length)) return 0;
  TakeReply(s, message.substr(internal::kPrefixBytes));
  return head_end + data_end + kFrameHeaderBytes + last.length;
}

void Session::Impl::TakeReply(Stream* s, std::string_view message) {
  CountFrames(3);
  s->got_head = true;
  s->http_status = 200;
  head_.metadata.Clear();
  events_->OnResponseHead(s->id, s->tag, std::move(head_.metadata));
  if (s->closed || s->done)
    return;  // it has ended the call: the rest is ignored, as the reset will be on its way
  AssignBytes(message_, message);
  events_->OnMessage(s->id, s->tag, std::move(message_));
  if (message_.capacity() > kKeptMessage) std::string().swap(message_);
  if (!s->closed && !s->done) OnReplyEnd(s, absl::OkStatus());
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

size_t Session::Impl::MessageLimit(const Stream* s) const {
  return std::min(options_.max_message_bytes, s->max_message_bytes);
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
        events_->OnMessage(s->id, s->tag, std::move(message_));
        if (message_.capacity() > kKeptMessage) std::string().swap(message_);
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
    inflate_left_ -= std::min(inflate_left_, inflated - std::min(inflated, free));
  }
  if (inflate_left_ == 0) {
    events_->OnLimit(Limit::kInflating);
    Stall();
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
