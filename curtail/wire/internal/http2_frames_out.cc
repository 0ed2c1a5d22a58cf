// SPDX-License-Identifier: Apache-2.0
//
// The sending half of an HTTP/2 connection.

#include <algorithm>
#include <utility>

#include "curtail/wire/internal/http2.h"

namespace curtail::wire::internal {

void Http2::SendSettings() {
  const std::pair<Setting, uint32_t> settings[] = {
      // Nobody uses the old priority tree; saying so spares both ends its upkeep.
      {Setting::kNoRfc7540Priorities, 1},
      {Setting::kInitialWindowSize, std::min(options_.stream_window_bytes, kMaxWindow)},
      {Setting::kMaxFrameSize, kMaxLongFrameBytes},
      {Setting::kMaxHeaderListSize, options_.max_header_bytes},
      {is_client() ? Setting::kEnablePush : Setting::kMaxConcurrentStreams,
       is_client() ? 0 : options_.max_concurrent_streams},
  };
  AppendFrameHeader({6 * std::size(settings), FrameType::kSettings, 0, 0}, &out_);
  for (const auto& [setting, value] : settings) {
    char entry[6] = {0, static_cast<char>(setting)};
    Put32(entry + 2, value);
    out_.append(entry, sizeof entry);
  }
  const uint32_t window = std::min(options_.connection_window_bytes, kMaxWindow);
  if (window > kDefaultWindow) {
    AppendNumberFrame(FrameType::kWindowUpdate, 0, window - kDefaultWindow, &out_);
  }
}

size_t Http2::BeginBlock() {
  const size_t begin = out_.size();
  out_.append(kFrameHeaderBytes, '\0');
  if (encoder_.pending()) encoder_.Begin(&out_);
  return begin;
}

void Http2::EndBlock(size_t begin, StreamId id, bool end_stream) {
  const size_t size = out_.size() - begin - kFrameHeaderBytes;
  const uint8_t end = end_stream ? kEndStream : 0;
  if (size <= kMaxFrameBytes) {
    const auto flags = static_cast<uint8_t>(end | kEndHeaders);
    FrameHeader{static_cast<uint32_t>(size), FrameType::kHeaders, flags, id}.Write(out_.data() + begin);
    return;
  }
  // Rare: cut into HEADERS and CONTINUATIONs.
  const std::string block = out_.substr(begin + kFrameHeaderBytes);
  out_.resize(begin);
  for (size_t at = 0; at < block.size(); at += kMaxFrameBytes) {
    const size_t n = std::min<size_t>(kMaxFrameBytes, block.size() - at);
    const uint8_t flags = (at == 0 ? end : 0) | (at + n == block.size() ? kEndHeaders : 0);
    AppendFrameHeader(
        {static_cast<uint32_t>(n), at == 0 ? FrameType::kHeaders : FrameType::kContinuation, flags, id},
        &out_);
    out_.append(block, at, n);
  }
}

void Http2::OpenWaiting() {
  while (!waiting_.empty() && opened_streams() < peer_max_streams_) {
    Stream* s = waiting_.Pop();
    s->waiting = false;
    last_opened_ = s->id;
    SendRequest(s);
    if (s->ending && !s->sent_end && s->queue.empty()) SendEnd(s);
    MarkReady(s);
  }
}

void Http2::Leave(Stream* s) {
  // A reply may be complete before its request is: the stream is closed without error (RFC 9113, 8.1).
  if (!s->got_end) AppendReset(s->id, ErrorCode::kNoError);
  s->closed = true;
  if (s->in_queue != nullptr) s->in_queue->Remove(s);
  streams_.Erase(s);
  leaving_.Push(s);
}

void Http2::Reset(Stream* s, ErrorCode code, absl::Status status) {
  if (!s->waiting) AppendReset(s->id, code);
  Close(s);
  Finish(s, std::move(status));
}

void Http2::RefuseStream(StreamId id, ErrorCode code) {
  AppendReset(id, code);
  React();
  Spend(&resets_, Limit::kResets);
}

void Http2::AppendReset(StreamId id, ErrorCode code) {
  sent_reset_ = true;
  AppendNumberFrame(FrameType::kRstStream, id, static_cast<uint32_t>(code), &out_);
}

void Http2::MarkReady(Stream* s) {
  if (s->waiting || s->queue.empty() || s->in_queue == &sendable_) return;
  StreamQueue& to = Window(s) > 0 ? sendable_ : blocked_;
  if (s->in_queue == &to) return;
  if (s->in_queue != nullptr) s->in_queue->Remove(s);
  to.Push(s);
}

// One DATA frame, of `limit` bytes or kMaxFrameBytes at most; streams take turns.
void Http2::AppendQueuedData(Stream* s, size_t limit) {
  sendable_.Remove(s);
  if (Window(s) <= 0) return blocked_.Push(s);  // SETTINGS have made it smaller
  const int64_t window = std::min(Window(s), send_window_);
  const size_t longest = std::min<size_t>(peer_data_bytes_, std::max<size_t>(limit, kMaxFrameBytes));
  const auto n =
      static_cast<uint32_t>(std::min<uint64_t>({s->queue.size(), longest, static_cast<uint64_t>(window)}));
  const bool last = s->ending && n == s->queue.size();
  const bool trailers = s->result != nullptr;
  AppendFrameHeader({n, FrameType::kData, last && !trailers ? kEndStream : uint8_t{0}, s->id}, &out_);
  s->queue.Take(n, &out_, lender_, s->unary);
  s->send_credit -= n;
  send_window_ -= n;
  queued_bytes_ -= n;
  if (!last) {
    MarkReady(s);
    const size_t left = s->queue.size();
    if (left <= kWritableBytes && left + n > kWritableBytes) events_->OnWritable(s->id, s->tag);
    return;
  }
  if (trailers) SendResult(s);
  s->sent_end = true;
  if (!is_client()) Leave(s);
}

void Http2::SendPing(uint64_t payload) {
  if (!broken_.ok()) return;
  char bytes[kFrameHeaderBytes + sizeof payload];
  FrameHeader{sizeof payload, FrameType::kPing, 0, 0}.Write(bytes);
  std::copy_n(reinterpret_cast<const char*>(&payload), sizeof payload, bytes + kFrameHeaderBytes);
  out_.append(bytes, sizeof bytes);
}

void Http2::AppendGoaway(StreamId last, ErrorCode code, std::string_view what) {
  char bytes[kFrameHeaderBytes + 8];
  FrameHeader{static_cast<uint32_t>(8 + what.size()), FrameType::kGoaway, 0, 0}.Write(bytes);
  Put32(bytes + kFrameHeaderBytes, static_cast<uint32_t>(last));
  Put32(bytes + kFrameHeaderBytes + 4, static_cast<uint32_t>(code));
  out_.append(bytes, sizeof bytes);
  out_.append(what);
}

void Http2::SendGoaway() {
  if (last_accepted_ || !broken_.ok()) return;
  last_accepted_ = is_client() ? 0 : last_opened_;
  ending_ = true;
  AppendGoaway(*last_accepted_, ErrorCode::kNoError, {});
}

void Http2::SendShutdownNotice() {
  if (is_client() || last_accepted_ || !broken_.ok()) return;
  AppendGoaway(static_cast<StreamId>(kMaxWindow), ErrorCode::kNoError, {});
}

}  // namespace curtail::wire::internal
