// SPDX-License-Identifier: Apache-2.0
//
// DESIGN. A Session is gRPC on an HTTP/2 connection, whose own DESIGN is at the top of internal/http2.cc.
//
//   session.cc           the interface
//   session_receive.cc   header fields and DATA, as requests, replies and messages
//   session_repeat.cc    header blocks and calls as they came before
//   session_send.cc      the owner's calls
//
// A message is held until it is whole; all of them together to max_partial_bytes. Of a long one the bytes go into the
// message as they come, or come there by Room(). Compressed messages are inflated as they have come whole, and compressed
// as they are sent, in the owner's thread. Memory for either is held for one message at a time. A thousand bytes may become
// a megabyte: beyond inflate_bytes the session stalls, and inflates the rest as its owner says. The same holds for header
// blocks of some bytes that name long entries of HPACK's table again and again.
//
// Requests that are not gRPC's get an HTTP status. Not offered: CONNECT.

#include "curtail/wire/session.h"

#include <utility>

#include "curtail/wire/internal/session_impl.h"

namespace curtail::wire {

using internal::ErrorCode;

Session::Impl::Impl(Role role, const SessionOptions& options, Events* events)
    : Http2(role, options, events),
      events_(events),
      held_limit_(options.max_partial_bytes),
      held_alone_limit_(options.max_message_bytes),
      inflate_left_(options.inflate_bytes / 8) {}

std::string_view Session::Impl::plain_answer() const {
  return "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nContent-Length: 48\r\n"
         "Connection: close\r\n\r\nThis port speaks gRPC over HTTP/2, not HTTP/1.\r\n";
}

std::span<char> Session::Impl::Room(size_t least) {
  if (data_left_ < least || data_left_ == 0 || !broken_.ok() || stalled()) return {};
  Stream* const s = streams_.Find(data_.stream);
  if (s == nullptr || s->done || s->got_end || s->unusual || s->waiting) return {};
  const std::span<char> room = s->reader.Room(data_left_);
  return room.size() < least ? std::span<char>() : room;
}

absl::Status Session::Impl::ReceivedInRoom(size_t bytes) {
  if (Stream* const s = streams_.Find(data_.stream)) {
    s->reader.Filled(bytes);
    held_bytes_ += bytes;
  }
  data_left_ -= static_cast<uint32_t>(bytes);
  OnDataPart("", bytes);
  Reap();
  return broken_;
}

std::vector<Session::OpenCall> Session::Impl::OpenCalls() const {
  std::vector<OpenCall> calls;
  calls.reserve(streams_.size());
  streams_.ForEach([&calls](const Stream* s) {
    if (s->known && !s->done) calls.push_back({s->id, s->tag, !s->got_end || !s->queue.empty()});
  });
  return calls;
}

// ----- the interface --------------------------------------------------------------------------------------

Session::Session(Role role, const SessionOptions& options, Events* events)
    : impl_(std::make_unique<Impl>(role, options, events)) {}
Session::~Session() = default;

absl::Status Session::Receive(std::string_view bytes) { return impl_->Receive(bytes); }
std::span<char> Session::Room(size_t least) { return impl_->Room(least); }
absl::Status Session::ReceivedInRoom(size_t bytes) { return impl_->ReceivedInRoom(bytes); }
bool Session::stalled() const { return impl_->stalled(); }
absl::Status Session::GoOn() { return impl_->GoOn(); }
bool Session::TookLong() { return impl_->TookLong(); }
bool Session::Pull(std::string* out, size_t limit) { return impl_->Pull(out, limit); }
bool Session::HasOutput() const { return impl_->HasOutput(); }
std::string_view Session::Ready() const { return impl_->Ready(); }
bool Session::TookReady() { return impl_->TookReady(); }
bool Session::Gather(Output* out, size_t limit) { return impl_->Gather(out, limit); }
void Session::Written() { impl_->Written(); }

absl::StatusOr<StreamId> Session::StartCall(const RequestHead& head, void* tag) {
  absl::StatusOr<internal::Stream*> s = impl_->StartCall(head, tag);
  if (!s.ok()) return s.status();
  return (*s)->id;
}

absl::StatusOr<StreamId> Session::StartUnaryCall(const RequestHead& head, std::string&& message, void* tag) {
  if (const StreamId id = impl_->StartRepeated(head, message, tag); id != 0) [[likely]]
    return id;
  return impl_->StartUnary(head, std::move(message), tag);
}

void Session::EndRequest(StreamId id) {
  if (internal::Stream* s = impl_->Find(id)) impl_->EndRequest(s);
}

void Session::SendHead(StreamId id, const Metadata& metadata) {
  if (internal::Stream* s = impl_->Find(id)) impl_->SendHead(s, metadata);
}

void Session::EndCall(StreamId id, const absl::Status& status, const Metadata& trailing) {
  if (internal::Stream* s = impl_->Find(id)) impl_->EndCall(s, status, trailing);
}

void Session::SendMessage(StreamId id, std::string&& message) {
  if (internal::Stream* s = impl_->Find(id)) impl_->SendMessage(s, std::move(message));
}

void Session::Cancel(StreamId id) {
  if (internal::Stream* s = impl_->Find(id)) {
    impl_->Reset(s, ErrorCode::kCancel, absl::CancelledError("cancelled"));
  }
}

void Session::FailCall(StreamId id, const absl::Status& status) {
  if (internal::Stream* s = impl_->Find(id)) impl_->FailCall(s, status);
}

std::vector<Session::OpenCall> Session::OpenCalls() const { return impl_->OpenCalls(); }

void Session::LimitHeld(size_t bytes, size_t alone) { impl_->LimitHeld(bytes, alone); }

void Session::SetReading(StreamId id, bool reading) {
  if (internal::Stream* s = impl_->Find(id)) impl_->SetReading(s, reading);
}

void Session::Abort(const absl::Status& why) { impl_->Abort(why); }
void Session::SendPing(uint64_t payload) { impl_->SendPing(payload); }
void Session::SendGoaway() { impl_->SendGoaway(); }
void Session::SendShutdownNotice() { impl_->SendShutdownNotice(); }
size_t Session::queued_bytes() const { return impl_->queued_bytes(); }
size_t Session::queued_bytes(StreamId id) const {
  const internal::Stream* s = impl_->Find(id);
  return s == nullptr ? 0 : s->queue.size();
}
size_t Session::open_streams() const { return impl_->open_streams(); }
size_t Session::memory_bytes() const { return impl_->memory_bytes(); }
bool Session::begun() const { return impl_->begun(); }
bool Session::input_unfinished() const { return impl_->input_unfinished(); }
uint64_t Session::inputs() const { return impl_->inputs(); }
bool Session::Finished() const { return impl_->Finished(); }

}  // namespace curtail::wire
