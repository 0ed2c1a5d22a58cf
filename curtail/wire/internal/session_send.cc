// SPDX-License-Identifier: Apache-2.0
//
// The sending half of a Session: gRPC's heads, messages and trailers, as frames.

#include <algorithm>
#include <cstring>
#include <utility>

#include "curtail/base/strings.h"
#include "curtail/base/version.h"
#include "curtail/wire/internal/compression.h"
#include "curtail/wire/internal/grpc_status.h"
#include "curtail/wire/internal/metadata_rules.h"
#include "curtail/wire/internal/session_impl.h"
#include "curtail/wire/internal/status_details.h"

namespace curtail::wire {

using internal::FrameHeader;
using internal::FrameType;
using internal::HpackEncoder;
using internal::kEndStream;
using internal::kFrameHeaderBytes;
using internal::kMaxFrameBytes;
using internal::kPrefixBytes;
using internal::Put32;
using internal::Stream;

namespace {

// Shorter messages are not worth compressing.
constexpr size_t kMinCompressed = 128;
// Error texts longer than this are cut: peers limit header lists to as little as 8 KiB.
constexpr size_t kMaxStatusMessage = 2048;
// The most that a status's details take, in base64, of a header block.
constexpr size_t kMaxDetailsBytes = 12u << 10;
// A request's header list at most, besides its path, authority and metadata.
constexpr size_t kOwnFieldBytes = 376;
constexpr size_t kTraceParentBytes = TraceParent::kKey.size() + TraceParent::kBytes + 32;
// A message that is longer, or finds as much output waiting, stands in its stream's queue until Pull().
constexpr size_t kMaxDirectBytes = kMaxFrameBytes;
constexpr size_t kMaxReady = 64u << 10;

// A frame that is longer is not kept.
constexpr size_t kMaxKnownFrame = 512;
constexpr Nanos kNoTimeout = Nanos::max();

// True if it has no fields but its method's, and perhaps a timeout.
bool IsPlain(const RequestHead& head) {
  return head.authority.empty() && head.encoding == Encoding::kIdentity && !head.trace_parent.set &&
         head.metadata.empty();
}

// The timeouts that are sent as `most`: those longer than `above`, up to `most`.
struct TimeoutStep {
  Nanos above, most;
};

// Rounds up to four digits, by less than a thousandth, so that the fields of calls repeat. The client keeps the exact
// time itself.
TimeoutStep StepOf(Nanos timeout) {
  const int64_t nanos = std::clamp<int64_t>(timeout.count(), 1, kNoTimeout.count() - 2);
  int64_t step = 1;
  while (nanos / step >= 10000) step *= 10;
  const int64_t steps = nanos / step + (nanos % step != 0 ? 1 : 0);
  if (steps > kNoTimeout.count() / step - 1) return {Nanos(nanos - 1), Nanos(nanos)};
  return {Nanos((steps - 1) * step), Nanos(steps * step)};
}

bool IsPath(std::string_view path) { return path.size() > 1 && path[0] == '/' && IsTextValue(path); }

// A host, perhaps with a port, without a user's name.
bool IsHostPort(std::string_view text) {
  return IsTextValue(text) && text.find_first_of(" @/?#\\") == std::string_view::npos;
}

}  // namespace

// ----- header blocks --------------------------------------------------------------------------------------

Session::Impl::EncodedRequest* Session::Impl::FindRequest(std::string_view path) {
  for (EncodedRequest& known : requests_) {
    if (known.generation == encoder_.generation() && known.path == path) return &known;
  }
  return nullptr;
}

Session::Impl::EncodedRequest& Session::Impl::NewRequest() {
  for (EncodedRequest& known : requests_) {
    if (known.generation != encoder_.generation()) return known;
  }
  return requests_[next_request_++ % requests_.size()];
}

// The fields that are the same for all calls of a method.
void Session::Impl::EncodeRequestFields(std::string_view path, std::string_view authority,
                                        EncodedFields* fields) {
  using enum HpackEncoder::Indexing;
  fields->bytes.clear();
  fields->generation = encoder_.generation();
  encoder_.Encode(":method", "POST", kIndex, &fields->bytes);
  encoder_.Encode(":scheme", options_.secure ? "https" : "http", kIndex, &fields->bytes);
  encoder_.Encode(":path", path, kIndex, &fields->bytes);
  // Another one than the connection's is rare, and would take the table's room.
  encoder_.Encode(":authority", authority.empty() ? options_.authority : authority,
                  authority.empty() ? kIndex : kNone, &fields->bytes);
  encoder_.Encode("te", "trailers", kIndex, &fields->bytes);
  encoder_.Encode("content-type", "application/grpc", kIndex, &fields->bytes);
  encoder_.Encode("user-agent", UserAgent(), kIndex, &fields->bytes);
}

void Session::Impl::AppendTimeout(Nanos timeout) {
  // The first timeout enters the table, so that the later ones need not spell the name.
  char text[12];
  const bool first = !std::exchange(sent_timeout_, true);
  encoder_.Encode("grpc-timeout", FormatTimeout(timeout, text),
                  first ? HpackEncoder::Indexing::kIndex : HpackEncoder::Indexing::kNone, &out_);
}

void Session::Impl::AppendRequest(StreamId id, const RequestHead& head, EncodedRequest* known) {
  const Nanos timeout = head.timeout.value_or(kNoTimeout);
  if (known != nullptr && IsPlain(head) && timeout > known->above && timeout <= known->most &&
      AppendFrame(known->frame, id)) [[likely]] {
    return;
  }
  AppendNewRequest(id, head, known);
}

void Session::Impl::AppendNewRequest(StreamId id, const RequestHead& head, EncodedRequest* known) {
  const std::optional<uint64_t> generation = Generation();
  const size_t begin = BeginBlock();
  if (!head.authority.empty()) [[unlikely]] {
    EncodedFields own;
    EncodeRequestFields(head.path, head.authority, &own);
    out_.append(own.bytes);
  } else {
    if (known == nullptr) {
      known = &NewRequest();
      known->path.assign(head.path);
      known->frame.generation.reset();
      EncodeRequestFields(head.path, {}, known);
    }
    out_.append(known->bytes);
  }
  const TimeoutStep step =
      head.timeout ? StepOf(*head.timeout) : TimeoutStep{kNoTimeout - Nanos(1), kNoTimeout};
  if (head.timeout) AppendTimeout(step.most);
  if (head.encoding != Encoding::kIdentity) {
    encoder_.Encode("grpc-encoding", internal::EncodingName(head.encoding), HpackEncoder::Indexing::kNone,
                    &out_);
    encoder_.Encode("grpc-accept-encoding", internal::kAcceptedEncodings, HpackEncoder::Indexing::kNone,
                    &out_);
  }
  if (head.trace_parent.set || !head.metadata.empty()) [[unlikely]]
    AppendRequestMetadata(head);
  EndBlock(begin, id, false);
  if (!IsPlain(head)) return;
  KeepFrame(begin, generation, &known->frame);
  known->above = step.above;
  known->most = step.most;
}

void Session::Impl::KeepFrame(size_t begin, std::optional<uint64_t> generation, EncodedFields* frame) {
  frame->generation.reset();
  if (encoder_.generation() != generation || out_.size() - begin > kMaxKnownFrame) return;
  frame->bytes.assign(out_, begin);
  frame->generation = generation;
}

void Session::Impl::AppendRequestMetadata(const RequestHead& head) {
  if (head.trace_parent.set) {
    const size_t bytes = kOwnFieldBytes + head.path.size() + options_.authority.size() + kTraceParentBytes +
                         (head.metadata.empty() ? 0 : internal::ListBytes(head.metadata));
    if (bytes <= peer_header_bytes_) AppendTraceParent(head.trace_parent);
  }
  if (head.metadata.empty()) return;
  internal::ForEach(head.metadata, [this](std::string_view name, std::string_view value) {
    encoder_.Encode(name, value, HpackEncoder::Indexing::kNone, &out_);
  });
}

// The first one enters the table, so that the later ones need not spell the name.
void Session::Impl::AppendTraceParent(const TraceParent& parent) {
  using enum HpackEncoder::Indexing;
  if (parent_name_.generation == encoder_.generation()) [[likely]] {
    out_.append(parent_name_.bytes).append(parent.view());
    return;
  }
  const size_t begin = out_.size();
  const bool first = !std::exchange(sent_parent_, true);
  encoder_.Encode(TraceParent::kKey, parent.view(), first ? kIndex : kNone, &out_);
  const size_t bytes = out_.size() - begin;
  if (first || bytes <= parent.view().size()) return;  // inserted, or found whole
  parent_name_.bytes.assign(out_, begin, bytes - parent.view().size());
  parent_name_.generation = encoder_.generation();
}

void Session::Impl::AppendReplyHead() {
  if (reply_head_.generation != encoder_.generation()) {
    using enum HpackEncoder::Indexing;
    reply_head_.bytes.clear();
    reply_head_.generation = encoder_.generation();
    encoder_.Encode(":status", "200", kIndex, &reply_head_.bytes);
    encoder_.Encode("content-type", "application/grpc", kIndex, &reply_head_.bytes);
  }
  out_.append(reply_head_.bytes);
}

void Session::Impl::AppendMetadata(const Metadata& metadata) {
  if (metadata.empty()) return;
  internal::ForEachSendable(metadata, [this](std::string_view name, std::string_view value) {
    encoder_.Encode(name, value, HpackEncoder::Indexing::kNone, &out_);
  });
}

void Session::Impl::AppendError(const absl::Status& status) {
  constexpr auto kNone = HpackEncoder::Indexing::kNone;
  std::string text(Message(status).substr(0, kMaxStatusMessage));
  std::string details = internal::EncodeDetails(status, text);
  if (details.size() > std::min<size_t>(kMaxDetailsBytes, peer_header_bytes_ / 2)) {
    text.append(Join(" [", details.size(), " bytes of details left out]"));
    details.clear();
  }
  if (!text.empty()) encoder_.Encode("grpc-message", PercentEncode(text), kNone, &out_);
  if (!details.empty()) encoder_.Encode("grpc-status-details-bin", details, kNone, &out_);
}

// After a head: trailers. Without one: the head, which is the trailers too.
void Session::Impl::AppendTrailers(Stream* s, const absl::Status& status, const Metadata& trailing) {
  const bool plain = status.ok() && s->sent_head && !s->refuse_compressed && trailing.empty();
  if (plain && AppendFrame(ok_trailers_, s->id)) [[likely]] {
    s->sent_end = true;
    return;
  }
  const std::optional<uint64_t> generation = Generation();
  const size_t begin = BeginBlock();
  if (!s->sent_head) AppendReplyHead();
  encoder_.Encode("grpc-status", internal::StatusCodeText(status.code()), HpackEncoder::Indexing::kIndex,
                  &out_);
  if (!status.ok()) AppendError(status);
  if (s->refuse_compressed) {
    encoder_.Encode("grpc-accept-encoding", internal::kAcceptedEncodings, HpackEncoder::Indexing::kNone,
                    &out_);
  }
  AppendMetadata(trailing);
  EndBlock(begin, s->id, true);
  if (plain) KeepFrame(begin, generation, &ok_trailers_);
  s->sent_head = s->sent_end = true;
}

// ----- calls ----------------------------------------------------------------------------------------------

absl::StatusOr<Stream*> Session::Impl::StartCall(const RequestHead& head, void* tag) {
  if (!is_client()) return absl::FailedPreconditionError("only a client starts calls");
  if (!broken_.ok()) return absl::UnavailableError(broken_.message());
  if (!takes_streams()) return absl::UnavailableError("the connection takes no new streams");
  EncodedRequest* const known = FindRequest(head.path);
  if (known == nullptr && !IsPath(head.path)) {
    return absl::InvalidArgumentError(Join("not a method path: ", head.path));
  }
  if (!head.authority.empty() && !IsHostPort(head.authority)) {
    return absl::InvalidArgumentError(Join("not an authority: ", head.authority));
  }
  if (!head.metadata.empty()) {
    size_t bytes = 0;
    if (absl::Status status = internal::CheckMetadata(head.metadata, &bytes); !status.ok()) return status;
    bytes += kOwnFieldBytes + head.path.size() + options_.authority.size();
    if (bytes > peer_header_bytes_) {
      return absl::ResourceExhaustedError(
          Join("header fields of ", bytes, " bytes; the server takes ", peer_header_bytes_));
    }
  }
  Stream* s = OpenStream(tag);
  s->send_encoding = head.encoding;
  s->max_message_bytes = head.max_message_bytes;
  if (s->waiting) {
    s->waiting_head = std::make_unique<RequestHead>(head);
  } else {
    AppendRequest(s->id, head, known);
  }
  return s;
}

absl::StatusOr<StreamId> Session::Impl::StartUnary(const RequestHead& head, std::string&& message,
                                                   void* tag) {
  absl::StatusOr<Stream*> s = StartCall(head, tag);
  if (!s.ok()) return s.status();
  SendMessage(*s, std::move(message), /*last=*/true);
  return (*s)->id;
}

StreamId Session::Impl::StartRepeated(const RequestHead& head, std::string_view message, void* tag) {
  const size_t bytes = kPrefixBytes + message.size();
  if (!is_client() || !takes_streams() || !OpensAtOnce() || !IsPlain(head)) return 0;
  if (bytes > kMaxDirectBytes || out_.size() >= kMaxReady) return 0;
  if (static_cast<int64_t>(bytes) > std::min(NewWindow(), send_window_)) return 0;
  const EncodedRequest* const known = FindRequest(head.path);
  const Nanos timeout = head.timeout.value_or(kNoTimeout);
  if (known == nullptr || timeout <= known->above || timeout > known->most) return 0;
  if (known->frame.generation != encoder_.generation()) return 0;
  Stream* const s = OpenAtOnce(tag);
  s->max_message_bytes = head.max_message_bytes;
  s->ending = s->unary = s->sent_end = true;
  const std::string& frame = known->frame.bytes;
  char* place = ExtendForOverwrite(out_, frame.size() + kFrameHeaderBytes + bytes);
  std::memcpy(place, frame.data(), frame.size());
  FrameHeader::SetStream(place, s->id);
  WriteMessage(s, message, /*compressed=*/false, /*last=*/true, place + frame.size());
  return s->id;
}

void Session::Impl::SendRequest(Stream* s) {
  AppendRequest(s->id, *s->waiting_head, FindRequest(s->waiting_head->path));
  s->waiting_head.reset();
}

void Session::Impl::SendHead(Stream* s, const Metadata& metadata) {
  if (is_client() || s->sent_head || s->ending) return;
  s->sent_head = true;
  const bool plain = s->send_encoding == Encoding::kIdentity && metadata.empty();
  if (plain && AppendFrame(plain_head_, s->id)) [[likely]]
    return;
  const std::optional<uint64_t> generation = Generation();
  const size_t begin = BeginBlock();
  AppendReplyHead();
  if (s->send_encoding != Encoding::kIdentity) {
    encoder_.Encode("grpc-encoding", internal::EncodingName(s->send_encoding), HpackEncoder::Indexing::kNone,
                    &out_);
  }
  AppendMetadata(metadata);
  EndBlock(begin, s->id, false);
  if (plain) KeepFrame(begin, generation, &plain_head_);
}

void Session::Impl::SendMessage(Stream* s, std::string&& message, bool last) {
  if (s->ending) return;
  if (!is_client() && !s->sent_head) SendHead(s, {});
  s->ending = s->unary = last;
  if (s->send_encoding != Encoding::kIdentity && message.size() >= kMinCompressed) [[unlikely]] {
    std::string compressed;
    if (internal::Compress(s->send_encoding, message, &compressed)) {
      s->unary = false;  // the caller keeps its message
      return AppendMessage(s, std::move(compressed), /*compressed=*/true, last);
    }
  }
  AppendMessage(s, std::move(message), /*compressed=*/false, last);
}

[[gnu::always_inline]] inline void Session::Impl::AppendMessage(Stream* s, std::string&& message,
                                                                bool compressed, bool last) {
  const size_t bytes = kPrefixBytes + message.size();
  const bool direct = bytes <= kMaxDirectBytes && s->queue.empty() && !s->waiting &&
                      out_.size() < kMaxReady &&
                      static_cast<int64_t>(bytes) <= std::min(Window(s), send_window_);
  if (!direct) {
    queued_bytes_ += bytes;
    s->queue.Push(std::move(message), compressed);
    return MarkReady(s);
  }
  WriteMessage(s, message, compressed, last, ExtendForOverwrite(out_, kFrameHeaderBytes + bytes));
  s->sent_end = last;
}

[[gnu::always_inline]] inline void Session::Impl::WriteMessage(Stream* s, std::string_view message,
                                                               bool compressed, bool last, char* place) {
  const size_t bytes = kPrefixBytes + message.size();
  FrameHeader{static_cast<uint32_t>(bytes), FrameType::kData, last ? kEndStream : uint8_t{0}, s->id}.Write(
      place);
  place[kFrameHeaderBytes] = compressed;
  Put32(place + kFrameHeaderBytes + 1, static_cast<uint32_t>(message.size()));
  std::memcpy(place + kFrameHeaderBytes + kPrefixBytes, message.data(), message.size());
  ready_bytes_ += bytes;
  s->send_credit -= static_cast<int64_t>(bytes);
  send_window_ -= static_cast<int64_t>(bytes);
}

void Session::Impl::EndRequest(Stream* s) {
  if (!is_client() || s->ending) return;
  s->ending = true;
  if (s->waiting || !s->queue.empty()) return;
  SendEnd(s);
}

void Session::Impl::EndCall(Stream* s, const absl::Status& status, const Metadata& trailing) {
  if (is_client() || s->ending) return;
  s->ending = true;
  if (!s->queue.empty()) {
    s->result = std::make_unique<internal::CallResult>(internal::CallResult{status, trailing});
    return;
  }
  AppendTrailers(s, status, trailing);
  Leave(s);
}

}  // namespace curtail::wire
