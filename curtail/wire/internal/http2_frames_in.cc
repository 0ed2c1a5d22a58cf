// SPDX-License-Identifier: Apache-2.0
//
// The receiving half of an HTTP/2 connection: frames, of which the layer hears when they carry something.

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/escaping.h"
#include "curtail/base/strings.h"
#include "curtail/wire/internal/grpc_status.h"
#include "curtail/wire/internal/http2.h"

namespace curtail::wire::internal {
namespace {

// Frames that a peer may provoke between two Pulls.
constexpr uint32_t kMaxReactions = 10000;
constexpr size_t kSettingBytes = 6;
// Of a GOAWAY's text, what is passed on.
constexpr size_t kMaxDebugBytes = 200;
// A header block is taken whole up to this size, or twice the limit for its fields, so that one with too many fields
// ends its call only. A longer one ends the connection.
constexpr size_t kMaxBlockBytes = 256u << 10;
constexpr uint32_t kMaxContinuations = 64;
constexpr size_t kKeptBlock = 4u << 10;

}  // namespace

void Http2::OnFrame(const FrameHeader& header, std::string_view payload) {
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

void Http2::React() {
  if (++reactions_ > kMaxReactions) LimitReached(Limit::kReactions, "too much to answer");
}

void Http2::LimitReached(Limit limit, std::string_view what) {
  if (!broken_.ok()) return;
  events_->OnLimit(limit);
  ConnectionError(ErrorCode::kEnhanceYourCalm, what);
}

bool Http2::Spend(Allowance* allowance, Limit limit) {
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

void Http2::StreamError(Stream* s, ErrorCode code) {
  std::string text = Join("the peer broke HTTP/2: ", ErrorName(code));
  React();
  Reset(s, code, is_client() ? absl::InternalError(text) : absl::CancelledError(text));
  if (Spend(&resets_, Limit::kResets)) Spend(&malformed_, Limit::kMalformed);
}

void Http2::RefuseRequest(StreamId id, bool malformed) {
  if (!malformed) events_->OnLimit(Limit::kStreams);
  RefuseStream(id, malformed ? ErrorCode::kProtocolError : ErrorCode::kRefusedStream);
  if (malformed) Spend(&malformed_, Limit::kMalformed);
}

// If we ever reset a stream this may have crossed the reset on its way: no answer then.
void Http2::RefuseClosed(StreamId id) {
  if (sent_reset_) return;
  RefuseStream(id, ErrorCode::kStreamClosed);
}

// One that we have not reset may not be used again, and one that was passed over may not be used at all (RFC 9113, 5.1).
void Http2::RefuseClosedHeaders(StreamId id) {
  if (sent_reset_) return;
  if (is_client()) return RefuseClosed(id);
  ConnectionError(skipped_ids_ ? ErrorCode::kProtocolError : ErrorCode::kStreamClosed,
                  "HEADERS on a stream that is closed");
}

bool Http2::CountContent(Stream* s, size_t bytes, bool end) {
  if (!s->unusual || s->content_left < 0) return true;
  if (static_cast<uint64_t>(s->content_left) < bytes) return false;
  s->content_left -= static_cast<int64_t>(bytes);
  return !end || s->content_left == 0;
}

bool Http2::Unpad(const FrameHeader& header, std::string_view* payload) {
  if (!header.Has(kPadded)) return true;
  if (payload->empty()) return false;
  const auto padding = static_cast<uint8_t>(payload->front());
  payload->remove_prefix(1);
  if (padding > payload->size()) return false;
  payload->remove_suffix(padding);
  return true;
}

// ----- header blocks --------------------------------------------------------------------------------------

[[gnu::always_inline]] inline void Http2::OnHeaders(const FrameHeader& header, std::string_view payload) {
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

void Http2::OnContinuation(const FrameHeader& header, std::string_view payload) {
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
  block_.clear();
  if (block_.capacity() > kKeptBlock) std::string().swap(block_);
}

// Every block is decoded, wanted or not: the table has to keep step with the peer's.
void Http2::OnHeaderBlock(StreamId id, bool end_stream, std::string_view block) {
  Stream* s = streams_.Find(id);
  if (s != nullptr && s->waiting)
    return ConnectionError(ErrorCode::kProtocolError, "HEADERS without a request");
  const bool opens = !is_client() && id > last_opened_;
  const bool wanted = s != nullptr || (opens && !last_accepted_);
  if (!(wanted ? DecodeFields(block) : decoder_.Decode(block, [](const HeaderField&) {})))
    return ConnectionError(ErrorCode::kCompressionError, "cannot decode a header block");
  if (opens) NoteOpened(id);
  if (wanted) return OnFields(s, id, end_stream);
  if (!opens)
    RefuseClosedHeaders(id);  // others are beyond our GOAWAY, which says that they were not looked at
}

// ----- DATA -----------------------------------------------------------------------------------------------

[[gnu::always_inline]] inline void Http2::OnCounted(Stream* s, const FrameHeader& header,
                                                    std::string_view content, bool last) {
  if (s == nullptr) return RefuseClosed(header.stream);
  if (s->got_end) return StreamError(s, ErrorCode::kStreamClosed);
  if (is_client() && !s->got_head) return StreamError(s, ErrorCode::kProtocolError);
  OnContent(s, content, last && header.Has(kEndStream));
}

[[gnu::always_inline]] inline void Http2::OnData(const FrameHeader& header, std::string_view payload) {
  if (Idle(header.stream)) return ConnectionError(ErrorCode::kProtocolError, "DATA without a stream");
  Stream* s = streams_.Find(header.stream);
  if (s != nullptr && s->waiting) s = nullptr;
  if (!CountReceived(s, header.length)) return;
  if (header.length == 0 && !header.Has(kEndStream) && !Spend(&empty_frames_, Limit::kEmptyFrames)) return;
  if (!Unpad(header, &payload)) return ConnectionError(ErrorCode::kProtocolError, "padding exceeds DATA");
  OnCounted(s, header, payload, /*last=*/true);
}

void Http2::OnDataPart(std::string_view part, size_t bytes) {
  const bool last = data_left_ == 0;
  if (last) ++inputs_;
  if (Idle(data_.stream)) return ConnectionError(ErrorCode::kProtocolError, "DATA without a stream");
  Stream* s = streams_.Find(data_.stream);
  if (s != nullptr && s->waiting) s = nullptr;
  if (!CountReceived(s, static_cast<uint32_t>(bytes))) return;
  OnCounted(s, data_, part, last);
}

// Takes `bytes` off the windows, which are filled up when half is used. False: the peer sent more than they allow.
inline bool Http2::CountReceived(Stream* s, uint32_t bytes) {
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
    return false;
  }
  if (!s->held) Credit(s);
  return true;
}

uint32_t Http2::StreamWindow() const {
  const uint32_t window = std::min(options_.stream_window_bytes, kMaxWindow);
  // Until the peer has acknowledged a small window it uses the default.
  return settings_acked_ ? window : std::max(window, kDefaultWindow);
}

inline void Http2::Credit(Stream* s) {
  if (s->uncredited == 0 || s->uncredited < std::min(StreamWindow(), options_.stream_window_bytes) / 2)
    return;
  AppendNumberFrame(FrameType::kWindowUpdate, s->id, std::exchange(s->uncredited, 0), &out_);
}

void Http2::SetReading(Stream* s, bool reading) {
  s->held = !reading;
  if (reading && !s->got_end) Credit(s);
}

// ----- the other frames -----------------------------------------------------------------------------------

void Http2::OnRstStream(const FrameHeader& header, std::string_view payload) {
  if (payload.size() != 4) return ConnectionError(ErrorCode::kFrameSizeError, "RST_STREAM of a wrong length");
  if (Idle(header.stream)) return ConnectionError(ErrorCode::kProtocolError, "RST_STREAM without a stream");
  if (!Spend(&resets_, Limit::kResets)) return;
  Stream* s = streams_.Find(header.stream);
  if (s == nullptr || s->waiting) return;
  const auto code = static_cast<ErrorCode>(Get32(payload.data()));
  absl::Status status = StatusFromReset(code);
  if (!is_client()) status = absl::CancelledError(status.message());
  const bool unprocessed = is_client() && code == ErrorCode::kRefusedStream && !s->got_head;
  Close(s);
  if (unprocessed) return FinishUnprocessed(s, std::move(status));
  Finish(s, std::move(status));
}

// The sum of the settings of one frame: a frame may repeat one a thousand times, which takes effect once.
struct Http2::NewSettings {
  uint32_t window;
  uint32_t least_table = UINT32_MAX;
  std::optional<uint32_t> table = std::nullopt;
};

void Http2::OnSettings(const FrameHeader& header, std::string_view payload) {
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

bool Http2::OnSetting(Setting setting, uint32_t value, NewSettings* changed) {
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
      peer_data_bytes_ = std::min(value, kMaxLongFrameBytes);
      if (value >= kMaxFrameBytes && value < 1u << 24) return true;
      ConnectionError(ErrorCode::kProtocolError, "MAX_FRAME_SIZE has a wrong value");
      return false;
    default:
      return true;
  }
}

// RFC 9113, 6.9.2: a new initial window changes those of all streams.
void Http2::SetPeerWindow(uint32_t bytes) {
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

void Http2::OnPing(const FrameHeader& header, std::string_view payload) {
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

// No stream is opened after the first GOAWAY. So only that one looks at all of them, and a later one at those that it
// refuses: a server may send many.
std::vector<StreamId> Http2::TakeRefused(StreamId last, bool first) {
  std::vector<StreamId> refused;
  if (first) {
    for (StreamId id : streams_.Ids()) {
      (id > last || streams_.Find(id)->waiting ? refused : kept_).push_back(id);
    }
  } else {
    const auto from = std::upper_bound(kept_.begin(), kept_.end(), last);
    refused.assign(from, kept_.end());
    kept_.erase(from, kept_.end());
  }
  return refused;
}

void Http2::OnGoaway(const FrameHeader& header, std::string_view payload) {
  if (header.stream != 0) return ConnectionError(ErrorCode::kProtocolError, "GOAWAY on a stream");
  if (!Spend(&empty_frames_, Limit::kEmptyFrames)) return;
  if (payload.size() < 8) return ConnectionError(ErrorCode::kFrameSizeError, "GOAWAY of a wrong length");
  const auto last = static_cast<StreamId>(Get32(payload.data()) & kMaxWindow);
  const auto code = static_cast<ErrorCode>(Get32(payload.data() + 4));
  std::string why;
  if (code != ErrorCode::kNoError) {
    const std::string_view text = payload.substr(8, kMaxDebugBytes);
    why = Join(ErrorName(code), " ", absl::CHexEscape({text.data(), text.size()}));
  }
  const bool first = !got_goaway_;
  got_goaway_ = ending_ = true;
  events_->OnGoaway(last, why);
  if (!is_client() || !broken_.ok()) return;
  for (StreamId id : TakeRefused(last, first)) {
    Stream* s = streams_.Find(id);
    if (s == nullptr) continue;
    absl::Status status = !s->waiting ? StatusFromReset(ErrorCode::kRefusedStream)
                          : why.empty()
                              ? absl::UnavailableError("the peer is shutting down and takes no new calls")
                              : absl::UnavailableError(Join("the peer takes no new calls: ", why));
    Close(s);
    FinishUnprocessed(s, std::move(status));
  }
}

void Http2::OnWindowUpdate(const FrameHeader& header, std::string_view payload) {
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

}  // namespace curtail::wire::internal
