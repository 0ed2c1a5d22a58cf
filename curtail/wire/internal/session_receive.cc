// SPDX-License-Identifier: Apache-2.0
//
// The receiving half of a Session: frames, turned into events. Header blocks are session_headers.cc's.

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/escaping.h"
#include "curtail/base/strings.h"
#include "curtail/wire/internal/compression.h"
#include "curtail/wire/internal/grpc_status.h"
#include "curtail/wire/internal/session_impl.h"

namespace curtail::wire {

using internal::AppendFrameHeader;
using internal::AppendNumberFrame;
using internal::ErrorCode;
using internal::FrameHeader;
using internal::FrameType;
using internal::Get16;
using internal::Get32;
using internal::kAck;
using internal::kDefaultWindow;
using internal::kEndStream;
using internal::kMaxWindow;
using internal::kPadded;
using internal::MessageReader;
using internal::Setting;

namespace {

// Frames that a peer may provoke between two Pulls.
constexpr uint32_t kMaxReactions = 10000;
constexpr size_t kSettingBytes = 6;
// Of a GOAWAY's text, what is passed on.
constexpr size_t kMaxDebugBytes = 200;
// Message buffers larger than this are not kept.
constexpr size_t kKeptMessage = 64u << 10;

}  // namespace

void Session::Impl::OnFrame(const FrameHeader& header, std::string_view payload) {
  if (!got_settings_ && (header.type != FrameType::kSettings || header.Has(kAck))) {
    return ConnectionError(ErrorCode::kProtocolError, "SETTINGS come first");
  }
  if (open_block_ && (header.type != FrameType::kContinuation || header.stream != open_block_->stream)) {
    return ConnectionError(ErrorCode::kProtocolError, "a header block was interrupted");
  }
  if (!open_block_) ++inputs_;
  switch (header.type) {
    case FrameType::kData:
      return OnData(header, payload);
    case FrameType::kHeaders:
      return OnHeaders(header, payload);
    case FrameType::kContinuation:
      return OnContinuation(header, payload);
    case FrameType::kRstStream:
      return OnRstStream(header, payload);
    case FrameType::kSettings:
      return OnSettings(header, payload);
    case FrameType::kPing:
      return OnPing(header, payload);
    case FrameType::kGoaway:
      return OnGoaway(header, payload);
    case FrameType::kWindowUpdate:
      return OnWindowUpdate(header, payload);
    case FrameType::kPushPromise:
      return ConnectionError(ErrorCode::kProtocolError, "pushes were not asked for");
    case FrameType::kPriority:
      if (!Spend(&empty_frames_, Limit::kEmptyFrames)) return;
      if (header.stream == 0) ConnectionError(ErrorCode::kProtocolError, "PRIORITY without a stream");
      if (payload.size() != 5) ConnectionError(ErrorCode::kFrameSizeError, "PRIORITY of a wrong length");
      return;
    default:  // RFC 9113, 4.1: unknown types are ignored
      Spend(&empty_frames_, Limit::kEmptyFrames);
  }
}

bool Session::Impl::Idle(StreamId id) const { return id % 2 == 0 || id > last_opened_; }

bool Session::Impl::Unpad(const FrameHeader& header, std::string_view* payload) {
  if (!header.Has(kPadded)) return true;
  if (payload->empty()) return false;
  const auto padding = static_cast<uint8_t>(payload->front());
  payload->remove_prefix(1);
  if (padding > payload->size()) return false;
  payload->remove_suffix(padding);
  return true;
}

void Session::Impl::React() {
  if (++reactions_ > kMaxReactions) LimitReached(Limit::kReactions, "too much to answer");
}

void Session::Impl::LimitReached(Limit limit, std::string_view what) {
  if (!broken_.ok()) return;
  events_->OnLimit(limit);
  ConnectionError(ErrorCode::kEnhanceYourCalm, what);
}

bool Session::Impl::Spend(Allowance* allowance, Limit limit) {
  if (allowance->left == 0) {
    const TimePoint now = events_->now();
    if (now - allowance->since < std::chrono::seconds(1)) {
      LimitReached(limit, Join("too many ", LimitName(limit)));
      return false;
    }
    allowance->since = now;
    allowance->left = allowance->per_second;
  }
  --allowance->left;
  return true;
}

void Session::Impl::StreamError(Stream* s, ErrorCode code) {
  std::string text = Join("the peer broke HTTP/2: ", internal::ErrorName(code));
  React();
  Reset(s, code, is_client() ? absl::InternalError(text) : absl::CancelledError(text));
  if (Spend(&resets_, Limit::kResets)) Spend(&malformed_, Limit::kMalformed);
}

// If we ever reset a stream this may have crossed the reset on its way: no answer then.
void Session::Impl::RefuseClosed(StreamId id) {
  if (sent_reset_) return;
  RefuseStream(id, ErrorCode::kStreamClosed);
}

// One that we have not reset may not be used again, and one that was passed over may not be used at all (RFC 9113, 5.1).
void Session::Impl::RefuseClosedHeaders(StreamId id) {
  if (sent_reset_) return;
  if (is_client()) return RefuseClosed(id);
  ConnectionError(skipped_ids_ ? ErrorCode::kProtocolError : ErrorCode::kStreamClosed,
                  "HEADERS on a stream that is closed");
}

bool Session::Impl::CountContent(Stream* s, size_t bytes, bool end) {
  if (!s->unusual || s->content_left < 0) return true;
  if (static_cast<uint64_t>(s->content_left) < bytes) return false;
  s->content_left -= static_cast<int64_t>(bytes);
  return !end || s->content_left == 0;
}

bool Session::Impl::TakeUnusual(Stream* s, size_t bytes, bool end) {
  if (!CountContent(s, bytes, end)) {
    StreamError(s, ErrorCode::kProtocolError);
    return false;
  }
  if (is_client() || s->http_status == 0) return true;
  if (end) AnswerHttp(s);
  return false;
}

// ----- DATA -----------------------------------------------------------------------------------------------

[[gnu::always_inline]] inline void Session::Impl::OnContent(Stream* s, const FrameHeader& header,
                                                            std::string_view content, bool last) {
  if (s == nullptr) return RefuseClosed(header.stream);
  if (s->closed) return;
  if (s->got_end) return StreamError(s, ErrorCode::kStreamClosed);
  if (is_client() && !s->got_head) return StreamError(s, ErrorCode::kProtocolError);
  if (s->unusual && !TakeUnusual(s, content.size(), last && header.Has(kEndStream))) [[unlikely]]
    return;
  OnMessageBytes(s, content);
  if (s->closed || !broken_.ok() || !last || !header.Has(kEndStream)) return;
  if (!is_client()) return OnRequestEnd(s);
  OnReplyEnd(s, internal::StatusFromHttp(s->http_status));
}

void Session::Impl::OnData(const FrameHeader& header, std::string_view payload) {
  if (Idle(header.stream)) return ConnectionError(ErrorCode::kProtocolError, "DATA without a stream");
  Stream* s = streams_.Find(header.stream);
  if (s != nullptr && s->waiting) s = nullptr;
  if (!CountReceived(s, header.length)) return;
  if (header.length == 0 && !header.Has(kEndStream) && !Spend(&empty_frames_, Limit::kEmptyFrames)) return;
  if (!Unpad(header, &payload)) return ConnectionError(ErrorCode::kProtocolError, "padding exceeds DATA");
  OnContent(s, header, payload, /*last=*/true);
}

void Session::Impl::OnDataPart(std::string_view part, size_t bytes) {
  const bool last = data_left_ == 0;
  if (last) ++inputs_;
  if (Idle(data_.stream)) return ConnectionError(ErrorCode::kProtocolError, "DATA without a stream");
  Stream* s = streams_.Find(data_.stream);
  if (s != nullptr && s->waiting) s = nullptr;
  if (!CountReceived(s, static_cast<uint32_t>(bytes))) return;
  OnContent(s, data_, part, last);
}

// Takes `bytes` off the windows, which are filled up when half is used. False: the peer sent more than they allowed.
bool Session::Impl::CountReceived(Stream* s, uint32_t bytes) {
  uncredited_ += bytes;
  const uint32_t window = std::clamp(options_.connection_window_bytes, kDefaultWindow, kMaxWindow);
  if (uncredited_ > window) {
    ConnectionError(ErrorCode::kFlowControlError, "more DATA than the connection's window");
    return false;
  }
  if (uncredited_ >= window / 2) {
    AppendNumberFrame(FrameType::kWindowUpdate, 0, std::exchange(uncredited_, 0), &out_);
  }
  if (s == nullptr) return true;
  s->uncredited += bytes;
  if (s->uncredited > StreamWindow()) {
    StreamError(s, ErrorCode::kFlowControlError);
  } else if (!s->held) {
    Credit(s);
  }
  return true;
}

uint32_t Session::Impl::StreamWindow() const {
  const uint32_t window = std::min(options_.stream_window_bytes, kMaxWindow);
  // Until the peer has acknowledged a small window it uses the default.
  return settings_acked_ ? window : std::max(window, kDefaultWindow);
}

void Session::Impl::Credit(Stream* s) {
  if (s->uncredited == 0 || s->uncredited < std::min(StreamWindow(), options_.stream_window_bytes) / 2)
    return;
  AppendNumberFrame(FrameType::kWindowUpdate, s->id, std::exchange(s->uncredited, 0), &out_);
}

void Session::Impl::SetReading(Stream* s, bool reading) {
  s->held = !reading;
  if (reading && !s->got_end) Credit(s);
}

size_t Session::Impl::MessageLimit(const Stream* s) const {
  return std::min(options_.max_message_bytes, s->max_message_bytes);
}

void Session::Impl::OnMessageBytes(Stream* s, std::string_view bytes) {
  while (!s->done && !s->closed) {
    const size_t held = s->reader.held_bytes();
    const MessageReader::Result result = s->reader.Next(&bytes, MessageLimit(s), &message_);
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

void Session::Impl::OnCompressedMessage(Stream* s) {
  if (s->encoding == Encoding::kIdentity) {
    return Fail(
        s, absl::InternalError(s->unknown_encoding ? "the messages have an encoding that is not supported"
                                                   : "a compressed message without a grpc-encoding"));
  }
  const internal::Inflated result = internal::Inflate(s->encoding, message_, MessageLimit(s), &inflated_);
  if (message_.capacity() > kKeptMessage) std::string().swap(message_);
  if (result == internal::Inflated::kTooLong) {
    return Fail(s,
                absl::ResourceExhaustedError(Join("inflated message exceeds ", MessageLimit(s), " bytes")));
  }
  if (result != internal::Inflated::kOk) return Fail(s, absl::InternalError("malformed compressed message"));
  events_->OnMessage(s->id, s->tag, std::move(inflated_));
  if (inflated_.capacity() > kKeptMessage) std::string().swap(inflated_);
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

// ----- the other frames -----------------------------------------------------------------------------------

void Session::Impl::OnRstStream(const FrameHeader& header, std::string_view payload) {
  if (payload.size() != 4) return ConnectionError(ErrorCode::kFrameSizeError, "RST_STREAM of a wrong length");
  if (Idle(header.stream)) return ConnectionError(ErrorCode::kProtocolError, "RST_STREAM without a stream");
  if (!Spend(&resets_, Limit::kResets)) return;
  Stream* s = streams_.Find(header.stream);
  if (s == nullptr || s->waiting) return;
  const auto code = static_cast<ErrorCode>(Get32(payload.data()));
  absl::Status status = internal::StatusFromReset(code);
  if (!is_client()) status = absl::CancelledError(status.message());
  const bool unprocessed = is_client() && code == ErrorCode::kRefusedStream && !s->got_head;
  Close(s);
  if (unprocessed) return FinishUnprocessed(s, std::move(status));
  Finish(s, std::move(status));
}

// The sum of the settings of one frame: a frame may repeat one a thousand times, which takes effect once.
struct Session::Impl::NewSettings {
  uint32_t window;
  uint32_t least_table = UINT32_MAX;
  std::optional<uint32_t> table = std::nullopt;
};

void Session::Impl::OnSettings(const FrameHeader& header, std::string_view payload) {
  if (header.stream != 0) return ConnectionError(ErrorCode::kProtocolError, "SETTINGS on a stream");
  if (!Spend(&settings_frames_, Limit::kSettings)) return;
  if (header.Has(kAck)) {
    if (!payload.empty()) return ConnectionError(ErrorCode::kFrameSizeError, "SETTINGS of a wrong length");
    settings_acked_ = true;
    return;
  }
  if (payload.size() % kSettingBytes != 0) {
    return ConnectionError(ErrorCode::kFrameSizeError, "SETTINGS of a wrong length");
  }
  if (!std::exchange(got_settings_, true)) peer_max_streams_ = UINT32_MAX;
  NewSettings changed{.window = static_cast<uint32_t>(peer_stream_window_)};
  for (; !payload.empty(); payload.remove_prefix(kSettingBytes)) {
    if (!OnSetting(static_cast<Setting>(Get16(payload.data())), Get32(payload.data() + 2), &changed)) return;
  }
  if (changed.table) {
    // A size that came and went has emptied the table, too.
    encoder_.SetPeerTableSize(changed.least_table);
    encoder_.SetPeerTableSize(*changed.table);
  }
  SetPeerWindow(changed.window);
  AppendFrameHeader({0, FrameType::kSettings, kAck, 0}, &out_);
  React();
}

bool Session::Impl::OnSetting(Setting setting, uint32_t value, NewSettings* changed) {
  switch (setting) {
    case Setting::kHeaderTableSize:
      changed->least_table = std::min(changed->least_table, value);
      changed->table = value;
      return true;
    case Setting::kEnablePush:
      if (value <= (is_client() ? 0u : 1u)) return true;
      ConnectionError(ErrorCode::kProtocolError, "ENABLE_PUSH has a wrong value");
      return false;
    case Setting::kMaxConcurrentStreams:
      peer_max_streams_ = value;
      return true;
    case Setting::kInitialWindowSize:
      changed->window = value;
      if (value <= kMaxWindow) return true;
      ConnectionError(ErrorCode::kFlowControlError, "a window is larger than HTTP/2 allows");
      return false;
    case Setting::kMaxHeaderListSize:
      peer_header_bytes_ = value;
      return true;
    case Setting::kMaxFrameSize:
      peer_data_bytes_ = std::min(value, internal::kMaxLongFrameBytes);
      if (value >= internal::kMaxFrameBytes && value < 1u << 24) return true;
      ConnectionError(ErrorCode::kProtocolError, "MAX_FRAME_SIZE has a wrong value");
      return false;
    default:
      return true;
  }
}

// RFC 9113, 6.9.2: a new initial window changes those of all streams.
void Session::Impl::SetPeerWindow(uint32_t bytes) {
  const bool larger = bytes > peer_stream_window_;
  peer_stream_window_ = bytes;
  if (!larger) return;  // streams find out when they send
  if (most_credit_ > int64_t{kMaxWindow} - bytes) {
    most_credit_ = 0;
    streams_.ForEach([&](Stream* s) { most_credit_ = std::max(most_credit_, s->send_credit); });
    if (most_credit_ > int64_t{kMaxWindow} - bytes) {
      return ConnectionError(ErrorCode::kFlowControlError, "a window is larger than HTTP/2 allows");
    }
  }
  for (size_t n = blocked_.size(); n > 0; --n) {
    Stream* s = blocked_.Pop();
    (Window(s) > 0 ? sendable_ : blocked_).Push(s);
  }
}

void Session::Impl::OnPing(const FrameHeader& header, std::string_view payload) {
  uint64_t bytes;
  if (header.stream != 0) return ConnectionError(ErrorCode::kProtocolError, "PING on a stream");
  if (!Spend(&empty_frames_, Limit::kEmptyFrames)) return;
  if (payload.size() != sizeof bytes) {
    return ConnectionError(ErrorCode::kFrameSizeError, "PING of a wrong length");
  }
  if (header.Has(kAck)) {
    std::memcpy(&bytes, payload.data(), sizeof bytes);
    return events_->OnPong(bytes);
  }
  AppendFrameHeader({sizeof bytes, FrameType::kPing, kAck, 0}, &out_);
  out_.append(payload);
  React();
}

void Session::Impl::OnGoaway(const FrameHeader& header, std::string_view payload) {
  if (header.stream != 0) return ConnectionError(ErrorCode::kProtocolError, "GOAWAY on a stream");
  if (payload.size() < 8) return ConnectionError(ErrorCode::kFrameSizeError, "GOAWAY of a wrong length");
  const auto last = static_cast<StreamId>(Get32(payload.data()) & kMaxWindow);
  const auto code = static_cast<ErrorCode>(Get32(payload.data() + 4));
  std::string why;
  if (code != ErrorCode::kNoError) {
    const std::string_view text = payload.substr(8, kMaxDebugBytes);
    why = Join(internal::ErrorName(code), " ", absl::CHexEscape({text.data(), text.size()}));
  }
  got_goaway_ = true;
  events_->OnGoaway(last, why);
  if (!is_client() || !broken_.ok()) return;
  for (StreamId id : streams_.Ids()) {
    Stream* s = streams_.Find(id);
    if (s == nullptr || (id <= last && !s->waiting)) continue;
    absl::Status status = !s->waiting ? internal::StatusFromReset(ErrorCode::kRefusedStream)
                          : why.empty()
                              ? absl::UnavailableError("the peer is shutting down and takes no new calls")
                              : absl::UnavailableError(Join("the peer takes no new calls: ", why));
    Close(s);
    FinishUnprocessed(s, std::move(status));
  }
}

void Session::Impl::OnWindowUpdate(const FrameHeader& header, std::string_view payload) {
  if (payload.size() != 4)
    return ConnectionError(ErrorCode::kFrameSizeError, "WINDOW_UPDATE of a wrong length");
  if (!Spend(&empty_frames_, Limit::kEmptyFrames)) return;
  const uint32_t bytes = Get32(payload.data()) & kMaxWindow;
  if (header.stream == 0) {
    if (bytes == 0) return ConnectionError(ErrorCode::kProtocolError, "WINDOW_UPDATE by nothing");
    send_window_ += bytes;
    if (send_window_ > int64_t{kMaxWindow}) ConnectionError(ErrorCode::kFlowControlError, "window too large");
    return;
  }
  if (Idle(header.stream))
    return ConnectionError(ErrorCode::kProtocolError, "WINDOW_UPDATE without a stream");
  Stream* s = streams_.Find(header.stream);
  if (s == nullptr || s->waiting) return;
  if (bytes == 0) return StreamError(s, ErrorCode::kProtocolError);
  s->send_credit += bytes;
  most_credit_ = std::max(most_credit_, s->send_credit);
  if (Window(s) > int64_t{kMaxWindow}) return StreamError(s, ErrorCode::kFlowControlError);
  MarkReady(s);
}

}  // namespace curtail::wire
