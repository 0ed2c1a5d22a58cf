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

// True if both begin and end with the same Word. REQUIRES: of one size, at least a Word's.
template <class Word>
bool SameEnds(std::string_view a, std::string_view b) {
  const auto word = [](const char* at) {
    Word value;
    std::memcpy(&value, at, sizeof value);
    return value;
  };
  const size_t last = a.size() - sizeof(Word);
  return word(a.data()) == word(b.data()) && word(a.data() + last) == word(b.data() + last);
}

// As ==, of short texts that mostly are the same.
[[gnu::always_inline]] inline bool Same(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  if (a.size() > 2 * sizeof(uint64_t)) return a == b;
  if (a.size() >= sizeof(uint64_t)) return SameEnds<uint64_t>(a, b);
  if (a.size() >= sizeof(uint32_t)) return SameEnds<uint32_t>(a, b);
  if (a.size() >= sizeof(uint16_t)) return SameEnds<uint16_t>(a, b);
  return a.empty() || a[0] == b[0];
}

}  // namespace

// ----- header blocks --------------------------------------------------------------------------------------

// By the bytes in which the heads of two methods, or the head and the trailers of a reply, mostly differ.
[[gnu::always_inline]] inline Session::Impl::KnownBlock& Session::Impl::KnownBlockFor(
    std::string_view block) const {
  const auto byte = [block](size_t i) { return static_cast<uint8_t>(block[std::min(i, block.size() - 1)]); };
  return (*known_blocks_)[(byte(0) + byte(2)) % known_blocks_->size()];
}

// Blocks repeat: requests of one method, heads and trailers of replies. The front of a block that refers to the
// decoder's tables alone means what it meant as long as they have not changed; so does the whole block, if it
// changed none.
bool Session::Impl::DecodeFields(std::string_view block) {
  if (!DecodeUncharged(block)) return false;
  if (head_.metadata.bytes() > internal::kDefaultTableBytes) [[unlikely]]
    ChargeCopies(block.size());
  return true;
}

bool Session::Impl::DecodeUncharged(std::string_view block) {
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

namespace {

// Reads the header of the frame at the front of `bytes`. False: the frame is not whole.
[[gnu::always_inline]] inline bool ReadWhole(std::string_view bytes, FrameHeader* header) {
  if (bytes.size() < kFrameHeaderBytes) return false;
  *header = FrameHeader::Parse(bytes.data());
  return bytes.size() - kFrameHeaderBytes >= header->length;
}

size_t BytesOf(const FrameHeader& header) { return kFrameHeaderBytes + header.length; }

}  // namespace

[[gnu::always_inline]] inline const Session::Impl::KnownBlock* Session::Impl::KnownHeaders(
    const FrameHeader& header, const char* frame, uint8_t flags) const {
  if (header.type != FrameType::kHeaders || header.flags != flags || header.length == 0) return nullptr;
  const std::string_view block(frame + kFrameHeaderBytes, header.length);
  const KnownBlock& known = KnownBlockFor(block);
  return known.generation == decoder_.generation() && Same(known.bytes, block) ? &known : nullptr;
}

// One message, which mostly comes with the head.
size_t Session::Impl::TakeRequest(StreamId id, const KnownBlock& head, std::string_view bytes) {
  FrameHeader data;
  if (!ReadWhole(bytes, &data) || data.type != FrameType::kData || data.flags != internal::kEndStream ||
      data.stream != id)
    return 0;
  const std::string_view content(bytes.data() + kFrameHeaderBytes, data.length);
  if (!MayOpen(id) || !MessageReader::IsWhole(content, options_.max_message_bytes)) return 0;
  if (!CountLast(0, data.length)) return 0;
  CountFrames(2);
  NoteOpened(id);
  Recall(head, /*whole=*/true);
  head_.metadata.Clear();
  Stream* const s = AcceptStream(id);
  Begin(s);
  if (!s->closed && !s->done) {
    AssignBytes(message_, content.substr(internal::kPrefixBytes));
    GiveMessage(s);
  }
  if (!s->closed && !s->done) OnRequestEnd(s);
  return BytesOf(data);
}

// One message, and trailers, of a request that has left whole.
[[gnu::always_inline]] inline size_t Session::Impl::TakeReply(StreamId id, std::string_view bytes) {
  FrameHeader data;
  if (!ReadWhole(bytes, &data) || data.type != FrameType::kData || data.flags != 0 || data.stream != id)
    return 0;
  const std::string_view content(bytes.data() + kFrameHeaderBytes, data.length);
  bytes.remove_prefix(BytesOf(data));
  FrameHeader last;
  if (!ReadWhole(bytes, &last)) return 0;
  const KnownBlock* const trailers =
      KnownHeaders(last, bytes.data(), internal::kEndHeaders | internal::kEndStream);
  if (trailers == nullptr || trailers->kind != KnownBlock::kOkTrailers || last.stream != id) return 0;
  Stream* const s = streams_.Find(id);
  if (s == nullptr || !s->unary || !s->sent_end || s->got_head || s->unusual || s->held) return 0;
  if (!MessageReader::IsWhole(content, MessageLimit(s)) || !CountLast(s->uncredited, data.length)) return 0;
  CountFrames(3);
  Close(s);
  EndQuietly(s);  // R3
  events_->OnReply(id, s->tag, content.substr(internal::kPrefixBytes));
  return BytesOf(data) + BytesOf(last);
}

size_t Session::Impl::TakeWhole(const FrameHeader& header, std::string_view bytes) {
  if (known_blocks_ == nullptr) return 0;
  const KnownBlock* const head = KnownHeaders(header, bytes.data(), internal::kEndHeaders);
  if (head == nullptr) return 0;
  bytes.remove_prefix(BytesOf(header));
  size_t taken = 0;
  if (head->kind == KnownBlock::kPlainHead) {
    taken = TakeReply(header.stream, bytes);
  } else if (head->kind == KnownBlock::kPlainRequest) {
    taken = TakeRequest(header.stream, *head, bytes);
  }
  return taken == 0 ? 0 : BytesOf(header) + taken;
}

}  // namespace curtail::wire
