// SPDX-License-Identifier: Apache-2.0
//
// session_impl.h - the inside of a Session: gRPC on an HTTP/2 connection. session.cc explains what is where.
#pragma once

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "curtail/base/string_bytes.h"
#include "curtail/wire/internal/binary_fields.h"
#include "curtail/wire/internal/compression.h"
#include "curtail/wire/internal/http2.h"
#include "curtail/wire/session.h"

namespace curtail::wire {

// The meaning of the header fields of one block, besides path, timeout and metadata.
struct ReceivedFields : internal::HttpFields {
  uint32_t joined = 0;     // values that share a field with others
  bool malformed = false;  // grpc-timeout or base64 that cannot be parsed
  bool is_post = false;
  bool grpc_content = false;
  bool unknown_encoding = false;
  Encoding encoding = Encoding::kIdentity;
  bool has_grpc_status = false;
  bool has_grpc_message = false;
  bool has_details = false;
};

class Session::Impl final : public internal::Http2 {
 public:
  using Stream = internal::Stream;

  Impl(Role role, const SessionOptions& options, Events* events);

  using Http2::stalled;
  // An inflater counts, with its messages.
  size_t memory_bytes() const {
    return Http2::memory_bytes() +
           (inflater_ == nullptr ? 0 : internal::kInflaterBytes + message_.size() + inflated_.size());
  }
  absl::Status GoOn();
  std::span<char> Room(size_t least);
  absl::Status ReceivedInRoom(size_t bytes);
  void FailCall(Stream* s, const absl::Status& status);
  std::vector<OpenCall> OpenCalls() const;
  void LimitHeld(size_t bytes, size_t alone) { held_limit_ = bytes, held_alone_limit_ = alone; }

  // session_send.cc
  absl::StatusOr<Stream*> StartCall(const RequestHead& head, void* tag);
  // StartCall() and SendMessage().
  absl::StatusOr<StreamId> StartUnary(const RequestHead& head, std::string&& message, void* tag);
  // Sends a whole unary call whose fields were sent before. 0: it goes the way of all.
  StreamId StartRepeated(const RequestHead& head, std::string_view message, void* tag);
  void SendHead(Stream* s, const Metadata& metadata);
  // `last`: the client sends no more messages.
  void SendMessage(Stream* s, std::string&& message, bool last = false);
  void EndRequest(Stream* s);
  void EndCall(Stream* s, const absl::Status& status, const Metadata& trailing);

 private:
  // Message buffers larger than this are not kept.
  static constexpr size_t kKeptMessage = 64u << 10;

  // Header fields as they were encoded last, good for as long as the encoder's generation stands.
  struct EncodedFields {
    std::string bytes;
    std::optional<uint64_t> generation;
  };
  // The same of the requests of one method.
  struct EncodedRequest : EncodedFields {
    std::string path;
    EncodedFields frame;  // with them and a timeout alone
    // The timeouts that it stands for are longer than the first, and no longer than the second.
    Nanos above{0}, most{0};
  };
  // A header block as it came last, and what it means as long as the decoder's generation stands.
  struct KnownBlock {
    std::string bytes;
    size_t front = 0;  // bytes of fields that are indices alone
    std::optional<uint64_t> generation;
    ReceivedFields fields;
    ReceivedFields front_fields;  // of these alone, and the next
    std::optional<Nanos> front_timeout;
    std::string path;
    std::string status;
    std::optional<Nanos> timeout;
    // A request or the head of a reply whose messages are not compressed, or trailers that say that all went well;
    // with no field more.
    enum : uint8_t { kOther, kPlainRequest, kPlainHead, kOkTrailers } kind = kOther;
  };

  std::string_view plain_answer() const override;

  // session_send.cc
  void SendRequest(Stream* s) override;
  void SendResult(Stream* s) override { AppendTrailers(s, s->result->status, s->result->trailing); }
  // `known`: FindRequest() of its path.
  void AppendRequest(StreamId id, const RequestHead& head, EncodedRequest* known);
  void AppendNewRequest(StreamId id, const RequestHead& head, EncodedRequest* known);
  EncodedRequest* FindRequest(std::string_view path);
  // A place for another method: a stale one, or the next in turn.
  EncodedRequest& NewRequest();
  // `authority`: empty for the session's.
  void EncodeRequestFields(std::string_view path, std::string_view authority, EncodedFields* fields);
  void AppendTimeout(Nanos timeout);
  // Of a block that may be kept once it is encoded; nothing: it begins with what is sent once.
  std::optional<uint64_t> Generation() const {
    return encoder_.pending() ? std::nullopt : std::optional(encoder_.generation());
  }
  // Keeps the frame at the end of the output, if its block changed no table.
  void KeepFrame(size_t begin, std::optional<uint64_t> generation, EncodedFields* frame);
  // Sends it again, on another stream. False: it does not stand for the same fields any more.
  bool AppendFrame(const EncodedFields& frame, StreamId id) {
    if (frame.generation != encoder_.generation()) [[unlikely]]
      return false;
    char* const place = ExtendForOverwrite(out_, frame.bytes.size());
    std::memcpy(place, frame.bytes.data(), frame.bytes.size());
    internal::FrameHeader::SetStream(place, id);
    return true;
  }
  void AppendReplyHead();
  void AppendMetadata(const Metadata& metadata);
  // REQUIRES: StartCall() has checked it.
  void AppendRequestMetadata(const RequestHead& head);
  void AppendTraceParent(const TraceParent& parent);
  void AppendTrailers(Stream* s, const absl::Status& status, const Metadata& trailing);
  // grpc-message and grpc-status-details-bin.
  void AppendError(const absl::Status& status);
  // Writes a DATA frame with it to `place`, in the output.
  inline void WriteMessage(Stream* s, std::string_view message, bool compressed, bool last, char* place);
  inline void AppendMessage(Stream* s, std::string&& message, bool compressed, bool last);

  // session_repeat.cc
  bool DecodeFields(std::string_view block) override;
  // As DecodeFields(), and charges nothing.
  bool DecodeUncharged(std::string_view block);
  bool DecodeNewFields(std::string_view block);
  inline KnownBlock& KnownBlockFor(std::string_view block) const;
  // Sets the decoded fields to those of the known block: of all of it, or of its front.
  void Recall(const KnownBlock& known, bool whole);
  // Goes on behind the `front` of a block, which was decoded or recalled, and remembers the block.
  bool DecodeRest(std::string_view block, size_t front);
  // True if a block that was just decoded is short, and so is its meaning.
  bool IsWorthKnowing(std::string_view block) const;
  void Remember(std::string_view block, KnownBlock* known) const;
  size_t TakeWhole(const internal::FrameHeader& header, std::string_view bytes) override;
  // The frames of one call behind its head, at the front of `bytes`. Return as TakeWhole().
  inline size_t TakeReply(StreamId id, std::string_view bytes);
  size_t TakeRequest(StreamId id, const KnownBlock& head, std::string_view bytes);
  // The block of a whole frame, if that is HEADERS that came before; else null.
  inline const KnownBlock* KnownHeaders(const internal::FrameHeader& header, const char* frame,
                                        uint8_t flags) const;

  // session_receive.cc
  // The owner has message_.
  void GiveMessage(Stream* s) {
    events_->OnMessage(s->id, s->tag, std::move(message_));
    if (message_.capacity() > kKeptMessage) std::string().swap(message_);
  }
  void OnField(const internal::HeaderField& field);
  void OnPseudoField(const internal::HeaderField& field);
  void OnEncoding(std::string_view name);
  void OnMetadata(const internal::HeaderField& field);
  // Server: tells the owner of a call that begins, with head_.
  void Begin(Stream* s);
  void OnFields(Stream* s, StreamId id, bool end_stream) override;
  void OnRequestHeaders(StreamId id, bool end_stream);
  void OnRequestTrailers(Stream* s, bool end_stream);
  void OnReplyHeaders(Stream* s, bool end_stream);
  // Server: a reply that consists of an HTTP status, for requests that are not gRPC.
  // The answer comes when the request has come whole: until then it may turn out to be malformed.
  void RefuseHttp(StreamId id, bool end_stream, int16_t http_status);
  void AnswerHttp(Stream* s);
  // Server: ends a request that the owner has not heard of. `encoding`: because of its compression.
  void Refuse(StreamId id, bool end_stream, absl::Status status, bool encoding = false);
  void OnContent(Stream* s, std::string_view content, bool end) override;
  // The same, once content-length has been looked at.
  void TakeContent(Stream* s, std::string_view content, bool end);
  // DATA of a stream that is `unusual`. True: the messages in it are still to be looked at.
  bool TakeUnusual(Stream* s, size_t bytes, bool end);
  size_t MessageLimit(const Stream* s) const {
    return std::min(options_.max_message_bytes, s->max_message_bytes);
  }
  // Stalled: what is left of `bytes` waits.
  inline void OnMessageBytes(Stream* s, std::string_view* bytes);
  // message_ is whole, and compressed.
  void OnCompressedMessage(Stream* s);
  // Goes on with inflater_, and stalls when inflate_left_ is used up.
  void Inflate(Stream* s);
  // A block of so many bytes has become head_.metadata, which copies entries of the table.
  void ChargeCopies(size_t block);
  // Takes `bytes` off inflate_left_; stalls when it is used up.
  void ChargeInflating(size_t bytes);
  void ShrinkMessages();
  // END_STREAM has arrived.
  void OnRequestEnd(Stream* s);
  void OnReplyEnd(Stream* s, absl::Status&& status, Metadata&& trailing = {});
  // The peer broke gRPC's rules or a limit: ends the call here and tells the peer.
  void Fail(Stream* s, absl::Status status);

  Events* const events_;  // immutable after construction

  // Output.
  std::array<EncodedRequest, 4> requests_;  // by path
  size_t next_request_ = 0;
  EncodedFields reply_head_;
  // Whole frames, as those of requests: of a head without metadata, and of trailers that say that all went well.
  EncodedFields plain_head_;
  EncodedFields ok_trailers_;
  bool sent_timeout_ = false;
  bool sent_parent_ = false;
  EncodedFields parent_name_;  // of the traceparent: all but its value

  // Input: of the block being decoded, or the message; their memory is used again.
  internal::BinaryFields binary_fields_;
  ReceivedFields fields_;
  std::unique_ptr<std::array<KnownBlock, 4>> known_blocks_;  // null before the first
  RequestHead head_;
  std::string grpc_status_;
  std::string grpc_message_;
  std::string details_;
  std::string message_;
  std::string inflated_;
  size_t held_limit_;
  size_t held_alone_limit_;
  std::unique_ptr<internal::Inflater> inflater_;  // of message_, into inflated_
  size_t inflate_left_;                           // of options_.inflate_bytes
  // Of the stream that has stalled the session: content behind the message, and whether it is the last.
  StreamId stalled_stream_ = 0;
  std::string stalled_content_;
  bool stalled_end_ = false;
};

}  // namespace curtail::wire
