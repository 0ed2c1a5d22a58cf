// SPDX-License-Identifier: Apache-2.0
//
// stream_events.h - what an HTTP/2 connection tells its owner of its streams, whatever they carry.
//
// Reentrancy: an event handler may call any send method of its connection, but nothing that takes
// or gives the connection's bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "curtail/base/clock.h"
#include "curtail/wire/limit.h"
#include "curtail/wire/metadata.h"

namespace curtail::wire {

using StreamId = int32_t;

// A stream with more bytes queued than this tells its owner when it has fewer (OnWritable).
inline constexpr size_t kWritableBytes = 64u << 10;

class StreamEvents {
 public:
  virtual ~StreamEvents() = default;

  // The bytes that SendMessage() queued on this stream have fallen to kWritableBytes or less, from
  // more. Not for the last bytes of a stream that is ending.
  virtual void OnWritable(StreamId, void* /*tag*/) {}
  // Client: the peer has certainly not processed this call, which ends next: it refused the stream,
  // said goodbye before, or never got it. The call may be made again. `message` is a unary call's
  // if the session has moved from it, and empty if it was copied.
  virtual void OnCallUnprocessed(StreamId, void* /*tag*/, std::string&& /*message*/) {}
  // The stream is over and its id is dead. Client: `status` is the call's result with its details
  // as payloads, 64 at most, and `trailing` its trailing metadata. Server: OK if the whole reply
  // was sent, otherwise the reason (CANCELLED when the client reset the stream).
  virtual void OnCallEnd(StreamId, void* tag, absl::Status&& status, Metadata&& trailing) = 0;
  // The peer will take no new streams on this connection. Client: streams above `last` end with
  // UNAVAILABLE. `why` is the error code's name and the peer's text, empty when there is no error.
  virtual void OnGoaway(StreamId /*last*/, std::string_view /*why*/) {}
  // The answer to SendPing(), with its payload.
  virtual void OnPong(uint64_t /*payload*/) {}
  // The peer has reached a limit. Its call or its connection ends, or has ended.
  virtual void OnLimit(Limit) {}
  // The present time. The connection asks when the peer has used up an allowance, such as 20,000
  // resets, to limit the rate.
  virtual TimePoint now() = 0;
};

}  // namespace curtail::wire
