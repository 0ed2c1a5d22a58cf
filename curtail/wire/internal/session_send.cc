// SPDX-License-Identifier: Apache-2.0
//
// The sending half of a Session: what the owner asks for, as nghttp2 submissions.

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "curtail/wire/internal/grpc_status.h"
#include "curtail/wire/internal/session_impl.h"

namespace curtail::wire {

using internal::HeaderBlock;
using internal::StaticField;

namespace {

// Error texts longer than this are cut: peers limit header lists to as little as 8 KiB.
constexpr size_t kMaxStatusMessage = 2048;

bool IsPath(std::string_view path) { return path.size() > 1 && path[0] == '/' && IsTextValue(path); }

void AddReplyHead(HeaderBlock* block) {
  block->Add(StaticField(":status", "200"));
  block->Add(StaticField("content-type", "application/grpc"));
}

}  // namespace

absl::StatusOr<Session::Impl::Stream*> Session::Impl::StartCall(const RequestHead& head, void* tag) {
  if (!is_client()) return absl::FailedPreconditionError("only a client starts calls");
  if (!broken_.ok()) return absl::UnavailableError(broken_.message());
  if (!nghttp2_session_check_request_allowed(h2_)) {
    return absl::UnavailableError("the connection takes no new streams");
  }
  if (!IsPath(head.path)) return absl::InvalidArgumentError(absl::StrCat("not a method path: ", head.path));
  if (!head.metadata.empty()) {
    if (absl::Status status = internal::CheckMetadata(head.metadata); !status.ok()) return status;
  }
  HeaderBlock block;
  block.Add(StaticField(":method", "POST"));
  block.Add(StaticField(":scheme", "http"));
  block.AddValue(":path", head.path);
  block.Add(StaticField(":authority", options_.authority));
  block.Add(StaticField("te", "trailers"));
  char timeout[12];
  if (head.timeout) block.AddValue("grpc-timeout", FormatTimeout(*head.timeout, timeout), true);
  block.Add(StaticField("content-type", "application/grpc"));
  block.Add(StaticField("user-agent", "curtail/0.1.0"));
  block.AddMetadata(head.metadata);

  Stream* s = NewStream(0);
  nghttp2_data_provider data = {};
  data.source.ptr = s;
  data.read_callback = ReadCallback();
  const int32_t id = nghttp2_submit_request(h2_, nullptr, block.data(), block.size(), &data, s);
  if (id < 0) {
    Free(s);
    return absl::UnavailableError(nghttp2_strerror(id));
  }
  s->id = id;
  s->tag = tag;
  s->known = true;
  ++open_streams_;
  return s;
}

void Session::Impl::SendHead(Stream* s, const Metadata& metadata) {
  if (is_client() || s->sent_head || s->ending) return;
  s->sent_head = true;
  HeaderBlock block;
  AddReplyHead(&block);
  block.AddMetadata(metadata);
  nghttp2_data_provider data = {};
  data.source.ptr = s;
  data.read_callback = ReadCallback();
  nghttp2_submit_response(h2_, s->id, block.data(), block.size(), &data);
}

void Session::Impl::SendMessage(Stream* s, std::string&& message) {
  if (s->ending) return;
  if (!is_client()) SendHead(s, {});
  queued_bytes_ += internal::kPrefixBytes + message.size();
  s->queue.Push(std::move(message));
  Resume(s);
}

void Session::Impl::EndRequest(Stream* s) {
  if (!is_client() || s->ending) return;
  s->ending = true;
  Resume(s);
}

void Session::Impl::EndCall(Stream* s, const absl::Status& status, const Metadata& trailing) {
  if (is_client() || s->ending) return;
  s->ending = true;
  s->end_status = status;
  s->end_metadata = trailing;
  if (s->sent_head) {
    Resume(s);
  } else {
    SubmitTrailers(s);
  }
}

void Session::Impl::Reset(Stream* s, uint32_t error_code, absl::Status status) {
  nghttp2_submit_rst_stream(h2_, NGHTTP2_FLAG_NONE, s->id, error_code);
  Finish(s, std::move(status));
}

void Session::Impl::Resume(Stream* s) {
  if (!s->waiting) return;
  s->waiting = false;
  nghttp2_session_resume_data(h2_, s->id);
}

// After a head: trailers. Without one: the head, which is the trailers too.
void Session::Impl::SubmitTrailers(Stream* s) {
  s->sent_end = true;
  HeaderBlock block;
  if (!s->sent_head) AddReplyHead(&block);
  block.Add(StaticField("grpc-status", internal::StatusCodeText(s->end_status.code())));
  std::string message;  // lives until the block is submitted
  if (const auto text = s->end_status.message(); !text.empty()) {
    message = PercentEncode({text.data(), std::min(text.size(), kMaxStatusMessage)});
    block.AddValue("grpc-message", message);
  }
  if (s->refuse_compressed) block.Add(StaticField("grpc-accept-encoding", "identity"));
  block.AddMetadata(s->end_metadata);
  if (s->sent_head) {
    nghttp2_submit_trailer(h2_, s->id, block.data(), block.size());
  } else {
    s->sent_head = true;
    nghttp2_submit_response(h2_, s->id, block.data(), block.size(), nullptr);
  }
}

// Tells nghttp2 how much of its next DATA frame there is; the bytes themselves go straight into Pull()'s
// output, from the send_data callback that follows at once.
ssize_t Session::Impl::OnReadData(Stream* s, size_t room, uint32_t* flags) {
  if (out_->size() >= out_limit_) return NGHTTP2_ERR_PAUSE;
  const size_t bytes = std::min(room, s->queue.size());
  if (bytes == 0 && !s->ending) {
    s->waiting = true;
    return NGHTTP2_ERR_DEFERRED;
  }
  *flags = NGHTTP2_DATA_FLAG_NO_COPY;
  if (s->ending && bytes == s->queue.size()) {
    *flags |= NGHTTP2_DATA_FLAG_EOF;
    if (is_client()) {
      s->sent_end = true;
    } else {
      *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
      SubmitTrailers(s);
    }
  }
  return static_cast<ssize_t>(bytes);
}

void Session::Impl::OnFrameSent(const nghttp2_frame& frame) {
  if (frame.hd.type == NGHTTP2_GOAWAY && frame.goaway.error_code != NGHTTP2_NO_ERROR && broken_.ok()) {
    broken_ = absl::UnavailableError(absl::StrCat("connection closed: the peer broke HTTP/2: ",
                                                  nghttp2_http2_strerror(frame.goaway.error_code)));
  }
  if (frame.hd.type != NGHTTP2_HEADERS) return;
  if (is_client()) {
    last_sent_request_ = frame.hd.stream_id;
    return;
  }
  if ((frame.hd.flags & NGHTTP2_FLAG_END_STREAM) == 0) return;
  Stream* s = Lookup(frame.hd.stream_id);
  if (s == nullptr) return;
  // A reply may be complete before its request is: the stream is closed without error (RFC 9113, 8.1).
  if (!s->got_end) nghttp2_submit_rst_stream(h2_, NGHTTP2_FLAG_NONE, s->id, NGHTTP2_NO_ERROR);
  Finish(s, absl::OkStatus());
}

void Session::Impl::OnFrameNotSent(const nghttp2_frame& frame, int error) {
  // A header block beyond nghttp2's limit; anything else means that the stream is closing already.
  if (is_client() || frame.hd.type != NGHTTP2_HEADERS || error != NGHTTP2_ERR_FRAME_SIZE_ERROR) return;
  nghttp2_submit_rst_stream(h2_, NGHTTP2_FLAG_NONE, frame.hd.stream_id, NGHTTP2_INTERNAL_ERROR);
}

}  // namespace curtail::wire
