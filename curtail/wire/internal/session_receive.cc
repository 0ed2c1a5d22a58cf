// SPDX-License-Identifier: Apache-2.0
//
// The receiving half of a Session: nghttp2's callbacks, turned into events.

#include <algorithm>
#include <charconv>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "curtail/wire/internal/grpc_status.h"
#include "curtail/wire/internal/session_impl.h"

namespace curtail::wire {

using internal::MessageReader;
using internal::ReceivedFields;

namespace {

// What RFC 9113 counts for a field on top of its name and value.
constexpr size_t kFieldOverhead = 32;

// application/grpc, application/grpc+proto, application/grpc;... but not application/grpc-web.
bool IsGrpcContent(std::string_view type) {
  constexpr std::string_view kType = "application/grpc";
  if (!type.starts_with(kType)) return false;
  return type.size() == kType.size() || type[kType.size()] == '+' || type[kType.size()] == ';';
}

std::string_view Trim(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

}  // namespace

void Session::Impl::OnBeginHeaders(const nghttp2_frame& frame) {
  header_stream_ = nullptr;
  if (frame.hd.type != NGHTTP2_HEADERS) return;
  if (!is_client() && frame.headers.cat == NGHTTP2_HCAT_REQUEST) {
    if (last_accepted_ && frame.hd.stream_id > *last_accepted_) return;
    header_stream_ = NewStream(frame.hd.stream_id);
    nghttp2_session_set_stream_user_data(h2_, frame.hd.stream_id, header_stream_);
  } else {
    header_stream_ = Lookup(frame.hd.stream_id);
    if (header_stream_ != nullptr) header_stream_->fields = ReceivedFields();
  }
}

void Session::Impl::OnHeader(Stream* s, std::string_view name, std::string_view value) {
  if (s->done || s->fields.too_long) return;
  s->fields.bytes += static_cast<uint32_t>(name.size() + value.size() + kFieldOverhead);
  if (s->fields.bytes > options_.max_header_bytes) {
    s->fields.too_long = true;
  } else if (name[0] == ':') {
    OnPseudoHeader(s, name, value);
  } else if (!OnKnownHeader(s, name, value)) {
    OnMetadata(s, name, value);
  }
}

void Session::Impl::OnPseudoHeader(Stream* s, std::string_view name, std::string_view value) {
  if (name == ":path") {
    s->head.path.assign(value);
  } else if (name == ":method") {
    s->fields.is_post = value == "POST";
  } else if (name == ":status") {
    // nghttp2 lets only three digits through.
    std::from_chars(value.data(), value.data() + value.size(), s->fields.http_status);
  }
}

bool Session::Impl::OnKnownHeader(Stream* s, std::string_view name, std::string_view value) {
  ReceivedFields& fields = s->fields;
  switch (name.size()) {
    case 11:
      if (name == "grpc-status") {
        fields.has_grpc_status = true;
        fields.grpc_status.assign(value);
        return true;
      }
      break;
    case 12:
      if (name == "content-type") {
        fields.grpc_content = IsGrpcContent(value);
        return true;
      }
      if (name == "grpc-timeout") {
        s->head.timeout = ParseTimeout(value);
        if (!s->head.timeout) fields.malformed = true;
        return true;
      }
      if (name == "grpc-message") {
        fields.grpc_message.assign(value);
        return true;
      }
      break;
    default:
      break;
  }
  return IsReservedKey(name);
}

void Session::Impl::OnMetadata(Stream* s, std::string_view name, std::string_view value) {
  if (!name.ends_with("-bin")) {
    s->head.metadata.Add(name, value);
    return;
  }
  // Proxies may join repeated fields with commas, which base64 never contains.
  for (bool more = true; more;) {
    const size_t comma = value.find(',');
    more = comma != std::string_view::npos;
    if (std::optional<std::string> bytes = Base64Decode(Trim(value.substr(0, comma)))) {
      s->head.metadata.Add(name, *bytes);
    } else {
      s->fields.malformed = true;
    }
    if (more) value.remove_prefix(comma + 1);
  }
}

void Session::Impl::OnFrame(const nghttp2_frame& frame) {
  const bool end_stream = (frame.hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
  switch (frame.hd.type) {
    case NGHTTP2_HEADERS: {
      Stream* s = std::exchange(header_stream_, nullptr);
      if (s == nullptr) return;
      if (is_client()) return OnReplyHeaders(s, end_stream);
      if (frame.headers.cat == NGHTTP2_HCAT_REQUEST) OnRequestHeaders(s);
      if (end_stream) OnRequestEnd(s);
      return;
    }
    case NGHTTP2_DATA: {
      Stream* s = end_stream ? Lookup(frame.hd.stream_id) : nullptr;
      if (s == nullptr) return;
      return is_client() ? OnReplyEnd(s) : OnRequestEnd(s);
    }
    case NGHTTP2_PING:
      if ((frame.hd.flags & NGHTTP2_FLAG_ACK) != 0) {
        uint64_t payload;
        std::memcpy(&payload, frame.ping.opaque_data, sizeof(payload));
        events_->OnPong(payload);
      }
      return;
    case NGHTTP2_GOAWAY:
      return OnGoaway(frame.goaway.last_stream_id);
    default:
      return;
  }
}

void Session::Impl::OnRequestHeaders(Stream* s) {
  if (s->fields.too_long) {
    return Fail(s, absl::ResourceExhaustedError(
                       absl::StrCat("request header fields exceed ", options_.max_header_bytes, " bytes")));
  }
  if (!s->fields.is_post) return RefuseHttp(s, "405");
  if (!s->fields.grpc_content) return RefuseHttp(s, "415");
  if (s->fields.malformed) return Fail(s, absl::InternalError("malformed grpc-timeout or binary metadata"));
  s->known = true;
  ++open_streams_;
  s->tag = events_->OnRequest(s->id, std::move(s->head));
}

void Session::Impl::OnReplyHeaders(Stream* s, bool end_stream) {
  if (end_stream) s->got_end = true;
  if (s->done) return;
  const ReceivedFields& fields = s->fields;
  if (fields.too_long) {
    return Fail(s, absl::ResourceExhaustedError(
                       absl::StrCat("reply header fields exceed ", options_.max_header_bytes, " bytes")));
  }
  if (fields.malformed) return Fail(s, absl::InternalError("malformed binary metadata in the reply"));
  if (s->got_head || end_stream) return end_stream ? OnReplyEnd(s) : void();
  if (fields.http_status < 200) {  // 1xx: the head is yet to come
    s->head.metadata.Clear();
    return;
  }
  s->got_head = true;
  if (fields.http_status != 200 || !fields.grpc_content) {
    return Fail(s, internal::StatusFromHttp(fields.http_status));
  }
  events_->OnResponseHead(s->id, s->tag, std::exchange(s->head.metadata, {}));
}

void Session::Impl::OnData(Stream* s, std::string_view bytes) {
  while (!s->done) {
    std::string message;
    const size_t held = s->reader.held_bytes();
    const MessageReader::Result result = s->reader.Next(&bytes, options_.max_message_bytes, &message);
    held_bytes_ += s->reader.held_bytes() - held;
    switch (result) {
      case MessageReader::Result::kNeedMore:
        if (held_bytes_ <= options_.max_partial_bytes) return;
        return Fail(s, absl::ResourceExhaustedError("too many bytes of unfinished messages"));
      case MessageReader::Result::kMessage:
        events_->OnMessage(s->id, s->tag, std::move(message));
        break;
      case MessageReader::Result::kTooLong:
        return Fail(s, absl::ResourceExhaustedError(
                           absl::StrCat("message exceeds ", options_.max_message_bytes, " bytes")));
      case MessageReader::Result::kCompressed:
        s->refuse_compressed = true;
        return Fail(s, absl::UnimplementedError("compressed messages are not supported"));
      case MessageReader::Result::kMalformed:
        return Fail(s, absl::InternalError("malformed message prefix"));
    }
  }
}

void Session::Impl::OnRequestEnd(Stream* s) {
  s->got_end = true;
  if (s->done) return;
  if (!s->reader.AtBoundary()) return Fail(s, absl::InternalError("the request ends inside a message"));
  events_->OnRequestEnd(s->id, s->tag);
}

void Session::Impl::OnReplyEnd(Stream* s) {
  s->got_end = true;
  if (s->done) return;
  const ReceivedFields& fields = s->fields;
  absl::Status status = fields.has_grpc_status
                            ? internal::StatusFromFields(fields.grpc_status, fields.grpc_message)
                            : internal::StatusFromHttp(fields.http_status);
  if (status.ok() && !s->reader.AtBoundary()) status = absl::InternalError("the reply ends inside a message");
  // Nobody will read the rest of the request.
  if (!s->sent_end) nghttp2_submit_rst_stream(h2_, NGHTTP2_FLAG_NONE, s->id, NGHTTP2_NO_ERROR);
  Finish(s, std::move(status), std::move(s->head.metadata));
}

void Session::Impl::OnGoaway(StreamId last) {
  events_->OnGoaway(last);
  // Calls still waiting for a free stream will not get one; nghttp2 ends those above `last` that have left.
  for (Stream* s = is_client() ? oldest_ : nullptr; s != nullptr; s = s->next) {
    if (s->id > last_sent_request_ && s->id != 0) {
      Reset(s, NGHTTP2_CANCEL, absl::UnavailableError("the peer is shutting down and takes no new calls"));
    }
  }
}

void Session::Impl::OnStreamClose(Stream* s, uint32_t error_code) {
  if (!s->done) {
    absl::Status status = internal::StatusFromReset(error_code);
    if (!is_client()) status = absl::CancelledError(status.message());
    Finish(s, std::move(status));
  }
  Free(s);
}

void Session::Impl::Fail(Stream* s, absl::Status status) {
  if (is_client() || s->queue.InsideMessage()) {
    return Reset(s, is_client() ? NGHTTP2_CANCEL : NGHTTP2_INTERNAL_ERROR, std::move(status));
  }
  queued_bytes_ -= s->queue.Clear();
  if (s->ending) {
    s->end_status = status;  // the owner's end, not yet sent, gives way
  } else {
    EndCall(s, status, {});
  }
  Finish(s, std::move(status));
}

void Session::Impl::RefuseHttp(Stream* s, std::string_view http_status) {
  const nghttp2_nv field = internal::StaticField(":status", http_status);
  s->sent_head = s->sent_end = s->ending = true;
  nghttp2_submit_response(h2_, s->id, &field, 1, nullptr);
  Finish(s, absl::OkStatus());
}

}  // namespace curtail::wire
