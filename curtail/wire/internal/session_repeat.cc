// SPDX-License-Identifier: Apache-2.0
//
// What repeats, and so is not decoded again: header blocks, and calls whose head, one message and trailers come together.

#include <algorithm>
#include <cstring>
#include <utility>

#include "curtail/wire/internal/session_impl.h"

namespace curtail::wire {

using internal::Field;
using internal::FrameHeader;
using internal::FrameType;
using internal::HeaderField;
using internal::HpackDecoder;
using internal::kFrameHeaderBytes;
using internal::MessageReader;

namespace {

// Header blocks, and texts in them, that are longer are not kept.
constexpr size_t kMaxKnownBlock = 64;
constexpr size_t kMaxKnownText = 256;

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

// ----- header blocks --------------------------------------------------------------------------------------

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

// ----- whole calls ----------------------------------------------------------------------------------------

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
    GiveMessage(s);
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
  GiveMessage(s);
  if (!s->closed && !s->done) OnReplyEnd(s, absl::OkStatus());
}

}  // namespace curtail::wire
