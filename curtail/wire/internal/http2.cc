// SPDX-License-Identifier: Apache-2.0
//
// DESIGN. Bytes of the peer are cut into frames and handled one by one; what the layer sends becomes frames at once, in
// `out_`, where Pull() takes them. Only messages may have to wait: for a window, or because they are long; those stand in
// their Stream's SendQueue until Pull().
//
//   http2.cc           a connection's life: preface, errors, shutdown, the streams' memory
//   http2_frames_in.cc   frames
//   http2_frames_out.cc      frames, too
//   http_fields.*      what HTTP asks of the fields of a header block
//   stream.*           the state of a stream; the table that finds it by id
//   frame.h, hpack.*   the formats
//
//   R1  Receive() and Pull() never nest, and events run inside them (and inside Cancel() and Abort(), for the call in
//       question). An event may send, cancel and abort, whatever stream it likes.
//   R2  So a stream may be closed while an event of it runs. Close() takes it out of the table, after which no frame
//       finds it; its memory is given back by Reap(), which runs between frames and between events only. Code that
//       has called an event looks at s->closed before it goes on with s, and at broken_ before the next frame.
//   R3  Finish() is the only caller of OnCallEnd, once for each stream the owner knows; but a layer may EndQuietly() a
//       stream and tell its owner by an event of its own.
//   R4  Frames enter out_ in the order in which they are encoded, because HPACK requires it; so nothing encoded is
//       ever taken back. A short message goes straight from the caller's string into out_: one copy.
//   R5  A reply is over for the peer with its last frame; the owner hears so (OnCallEnd) from the Pull() that takes
//       this frame. Until then its stream stands in leaving_, closed, and counts for max_concurrent_streams: a peer
//       that does not read cannot make replies pile up.
//   R6  What the peer can make us write without asking for a reply (acknowledgements, resets, window updates) is
//       counted between two Pulls; too much is ENHANCE_YOUR_CALM. So are header blocks without end, and whatever has
//       an Allowance: resets of either end, malformed requests, SETTINGS, frames that carry nothing. A clock is read
//       only when an allowance is used up.
//   R7  What a frame costs is linear in its bytes, however many streams there are: SETTINGS change all windows at once
//       (StreamState::send_credit), and then look only at streams whose messages wait for a window. Of a header block
//       that is longer than it may be, or that nobody wants, the decoder goes on with the table alone.
//   R8  Long messages are not copied. Gather() hands out their bytes where they lie; the message stays in its stream or,
//       once that needs it no more, with the Lender, until the owner has written them. Of DATA that has not come whole
//       only the header is kept: its bytes go to the layer as they come. Frames of other kinds, and padded ones, are held
//       until they are whole. Limits and windows count bytes as they come.
//   R9  A layer may stall its connection when what it has to do takes long: input waits until the layer goes on, when its
//       owner says so.
//  R10 What repeats is not worked out again. A header block that came before means what it meant, and one that was encoded
//      before is sent again, as long as the table behind it has not changed (HpackDecoder and HpackEncoder::generation);
//      neither is kept if it changed the table itself. A request or reply whose header blocks came before, with one whole
//      message, is taken in one step, and such a request is sent in one. A peer that never repeats itself pays the copies
//      of short blocks.
//
// A server holds its output back until the client's preface has arrived, so that a peer that speaks HTTP/1 reads an
// answer in its own language.
//
// Not offered: server push, priorities, HTTP/1 upgrade. A header block that is longer than it may be, yet whole, ends its
// call only, because the table of HPACK has kept step.

#include "curtail/wire/internal/http2.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "curtail/base/strings.h"

namespace curtail::wire::internal {
namespace {

// The memory that a stream takes beside its header fields and messages, the owner's share included; roughly.
constexpr size_t kStreamMemory = 2u << 10;
// An idle connection keeps no larger buffers than this.
constexpr size_t kKeptBuffer = 16u << 10;
// Streams that a client opens before it knows the server's limit.
constexpr uint32_t kFirstStreams = 100;

// True if this looks like the start of an HTTP/1 request: a method in capitals, then, if it is long enough, a space and
// what is no word in capitals.
bool LooksLikeHttp1(std::string_view bytes) {
  const auto end =
      std::find_if_not(bytes.begin(), bytes.end(), [](char c) { return absl::ascii_isupper(c); });
  if (end == bytes.begin() || end == bytes.end()) return end != bytes.begin();
  return *end == ' ' && (end + 1 == bytes.end() || !absl::ascii_isupper(end[1]));
}

void Shrink(std::string* buffer) {
  if (buffer->capacity() > kKeptBuffer) std::string().swap(*buffer);
}

}  // namespace

Http2::Http2(Role role, const SessionOptions& options, StreamEvents* events)
    : role_(role), options_(options), events_(events), peer_max_streams_(kFirstStreams) {
  if (is_client()) out_.append(kPreface);
  SendSettings();
}

Http2::~Http2() {
  while (Stream* s = streams_.Any()) Close(s);
  while (!leaving_.empty()) {
    Stream* s = leaving_.Pop();
    s->bucket_next = closed_;
    closed_ = s;
  }
  Reap();
}

// ----- streams --------------------------------------------------------------------------------------------

void Http2::Finish(Stream* s, absl::Status&& status, Metadata&& trailing) {
  if (s->done) return;
  EndQuietly(s);
  if (s->known) events_->OnCallEnd(s->id, s->tag, std::move(status), std::move(trailing));
}

void Http2::FinishUnprocessed(Stream* s, absl::Status&& status) {
  events_->OnCallUnprocessed(s->id, s->tag, s->unary ? s->queue.TakeBack(lender_) : std::string());
  Finish(s, std::move(status));
}

// ----- the connection -------------------------------------------------------------------------------------

const absl::Status& Http2::Broken(absl::Status why) {
  if (broken_.ok()) broken_ = std::move(why);
  ending_ = true;
  return broken_;
}

void Http2::ConnectionError(ErrorCode code, std::string_view what) {
  if (!broken_.ok()) return;
  AppendGoaway(is_client() ? 0 : last_opened_, code, what);
  Broken(absl::UnavailableError(Join("connection error: ", ErrorName(code), ": ", what)));
}

absl::Status Http2::TakePreface(std::string_view* bytes) {
  const std::string_view expected = kPreface.substr(preface_have_, bytes->size());
  if (bytes->substr(0, expected.size()) == expected) {
    preface_have_ += expected.size();
    bytes->remove_prefix(expected.size());
    return absl::OkStatus();
  }
  const std::string start = std::string(kPreface, 0, preface_have_).append(bytes->substr(0, 16));
  silent_ = true;
  if (!LooksLikeHttp1(start)) return Broken(absl::InvalidArgumentError("the peer does not speak HTTP/2"));
  plain_answer_ = plain_answer();
  return Broken(absl::InvalidArgumentError("the peer speaks HTTP/1, not HTTP/2"));
}

// Its header first, which says how long it is.
void Http2::TakeRest(std::string_view* bytes) {
  for (size_t need = kFrameHeaderBytes; broken_.ok();) {
    if (partial_.size() >= kFrameHeaderBytes) {
      const FrameHeader header = FrameHeader::Parse(partial_.data());
      need = kFrameHeaderBytes + header.length;
      if (partial_.size() == need) {
        OnFrame(header, std::string_view(partial_).substr(kFrameHeaderBytes));
        Reap();
        partial_.clear();
        return Shrink(&partial_);
      }
      if (TooLong(header)) {
        return ConnectionError(ErrorCode::kFrameSizeError, "a frame is longer than allowed");
      }
      if (partial_.size() == kFrameHeaderBytes && BeginData(header)) {
        partial_.clear();
        return TakeData(bytes);
      }
    }
    const size_t take = std::min(bytes->size(), need - partial_.size());
    if (take == 0) return;
    partial_.append(bytes->substr(0, take));
    bytes->remove_prefix(take);
  }
}

absl::Status Http2::Receive(std::string_view bytes) {
  if (!broken_.ok()) return broken_;
  if (stalled_) [[unlikely]] {
    waiting_input_.append(bytes);
    return broken_;
  }
  if (!is_client() && preface_have_ < kPreface.size()) {
    if (absl::Status status = TakePreface(&bytes); !status.ok()) return status;
  }
  if (data_left_ > 0) TakeData(&bytes);
  if (!partial_.empty()) TakeRest(&bytes);
  while (broken_.ok() && !stalled_ && bytes.size() >= kFrameHeaderBytes) {
    const FrameHeader header = FrameHeader::Parse(bytes.data());
    if (header.length > kMaxFrameBytes && TooLong(header)) {
      ConnectionError(ErrorCode::kFrameSizeError, "a frame is longer than allowed");
      break;
    }
    if (bytes.size() < kFrameHeaderBytes + header.length) {
      if (!BeginData(header)) break;
      bytes.remove_prefix(kFrameHeaderBytes);
      TakeData(&bytes);
      return broken_;
    }
    size_t taken = 0;
    if (header.type == FrameType::kHeaders && got_settings_ && !open_block_)
      taken = TakeWhole(header, bytes);  // R10
    if (taken == 0) {
      OnFrame(header, bytes.substr(kFrameHeaderBytes, header.length));
      taken = kFrameHeaderBytes + header.length;
    }
    Reap();
    bytes.remove_prefix(taken);
  }
  if (!bytes.empty() && broken_.ok()) (stalled_ ? waiting_input_ : partial_).append(bytes);
  return broken_;
}

// Only requests and replies have reasons to be long.
bool Http2::TooLong(const FrameHeader& header) {
  took_long_ |= header.length > kMaxFrameBytes && header.type == FrameType::kData;
  const bool may_be_long = header.type == FrameType::kData || header.type == FrameType::kHeaders ||
                           header.type == FrameType::kContinuation;
  return header.length > (may_be_long ? kMaxLongFrameBytes : kMaxFrameBytes);
}

// Padded DATA waits for its padding; DATA that comes at a wrong time, for OnFrame() to say so.
bool Http2::BeginData(const FrameHeader& header) {
  if (header.type != FrameType::kData || header.Has(kPadded) || !got_settings_ || open_block_) {
    return false;
  }
  data_ = header;
  data_left_ = header.length;
  return true;
}

void Http2::TakeData(std::string_view* bytes) {
  const auto n = static_cast<uint32_t>(std::min<size_t>(bytes->size(), data_left_));
  if (n == 0) return;
  data_left_ -= n;
  OnDataPart(bytes->substr(0, n), n);
  Reap();
  bytes->remove_prefix(n);
}

// A buffer that grows by doubling copies a long message once more: so each stream makes room for all that it sends now.
void Http2::AppendQueued(size_t limit) {
  while (!sendable_.empty() && send_window_ > 0 && ready() < limit) {
    Stream* const s = sendable_.front();
    if (lender_.pieces == nullptr) {
      const int64_t window = std::max<int64_t>(std::min(Window(s), send_window_), 0);
      const size_t bytes =
          std::min({s->queue.size(), static_cast<size_t>(window), limit - out_.size() + kMaxFrameBytes});
      out_.reserve(out_.size() + bytes + (bytes / kMaxFrameBytes + 1) * kFrameHeaderBytes);
    }
    AppendQueuedData(s, limit - ready());
  }
}

bool Http2::Pull(std::string* out, size_t limit) {
  if (silent_) {
    out->append(std::exchange(plain_answer_, {}));
    return false;
  }
  if (!is_client() && preface_have_ < kPreface.size()) return false;
  if (!waiting_.empty() && broken_.ok()) [[unlikely]]
    OpenWaiting();
  if (!sendable_.empty()) AppendQueued(limit - std::min(limit, out->size()));
  if (out->empty()) {
    out->swap(out_);
  } else {
    out->append(out_);
  }
  out_.clear();
  Pulled();
  return !out_.empty() || (!sendable_.empty() && send_window_ > 0);
}

void Http2::Pulled() {
  pulled_ = true;
  Shrink(&out_);
  ready_bytes_ = 0;
  reactions_ = 0;
  while (!leaving_.empty()) {
    Stream* s = leaving_.Pop();
    s->bucket_next = closed_;
    closed_ = s;
    Finish(s, absl::OkStatus());
  }
  Reap();
}

bool Http2::Gather(Output* out, size_t limit) {
  lender_.pieces = &out->pieces;
  const bool more = Pull(&out->bytes, limit);
  lender_.pieces = nullptr;
  out->size = out->bytes.size() + std::exchange(lender_.lent_bytes, 0);
  return more;
}

void Http2::Abort(const absl::Status& why) {
  if (broken_.ok()) {
    if (!last_accepted_) AppendGoaway(is_client() ? 0 : last_opened_, ErrorCode::kNoError, {});
    Broken(why.ok() ? absl::UnavailableError("connection closed") : why);
  }
  const absl::Status status = why.ok() ? broken_ : why;
  // The owner's events may cancel others meanwhile, but start none.
  for (StreamId id : streams_.Ids()) {
    Stream* s = streams_.Find(id);
    if (s == nullptr) continue;
    Close(s);
    if (s->waiting || (is_client() && !pulled_)) {
      FinishUnprocessed(s, absl::Status(status));
    } else {
      Finish(s, absl::Status(status));
    }
  }
  while (!leaving_.empty()) {
    Stream* s = leaving_.Pop();
    s->bucket_next = closed_;
    closed_ = s;
    Finish(s, absl::Status(status));
  }
  ready_bytes_ = 0;
}

size_t Http2::memory_bytes() const {
  return (streams_.size() + leaving_.size()) * kStreamMemory + head_bytes_ + held_bytes_ + queued_bytes_ +
         out_.size() + input_bytes() + waiting_input_.size() + lender_.kept_bytes;
}

bool Http2::input_unfinished() const {
  if (stalled_) return false;  // it is this end that is late
  if (open_block_) return true;
  if (data_left_ > 0) return open_streams_ == 0;
  if (partial_.empty()) return false;
  if (partial_.size() < kFrameHeaderBytes) return open_streams_ == 0;
  return open_streams_ == 0 || FrameHeader::Parse(partial_.data()).type != FrameType::kData;
}

bool Http2::Finished() const {
  if (silent_) return plain_answer_.empty();
  // A client that has not even begun will hear no goodbye: a server holds everything back until its preface.
  if (!is_client() && last_accepted_ && preface_have_ < kPreface.size()) return true;
  if (!out_.empty()) return false;
  if (!broken_.ok()) return true;
  // A client that says goodbye may still ask (PING) until it closes.
  return (last_accepted_ || (is_client() && got_goaway_)) && streams_.size() == 0 && leaving_.empty();
}

}  // namespace curtail::wire::internal
