// SPDX-License-Identifier: Apache-2.0
//
// stream.h - the state of one call on one connection, and the list of all of them.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "curtail/wire/internal/messages.h"
#include "curtail/wire/metadata.h"
#include "curtail/wire/session.h"

namespace curtail::wire::internal {

// What the header fields of the block being received say; starts afresh with each HEADERS frame.
struct ReceivedFields {
  uint32_t bytes = 0;  // as RFC 9113 6.5.2 counts: names, values, 32 a field
  bool too_long = false;
  bool malformed = false;  // grpc-timeout or base64 that cannot be parsed
  bool grpc_content = false;
  bool is_post = false;
  bool has_grpc_status = false;
  int http_status = 0;
  std::string grpc_status;   // short enough to need no allocation
  std::string grpc_message;  // percent-encoded
};

// A Stream is created when its HEADERS are submitted or begin to arrive, and freed only from nghttp2's
// on_stream_close callback or with the session: never while an event of it runs.
struct Stream {
  StreamId id = 0;
  void* tag = nullptr;
  // Links of the session's list, oldest first.
  Stream* previous = nullptr;
  Stream* next = nullptr;

  bool known = false;      // the owner knows this stream and is owed an OnCallEnd
  bool done = false;       // OnCallEnd was called, or is not owed: the owner's calls are ignored from now on
  bool sent_head = false;  // client: HEADERS left; server: HEADERS submitted
  bool got_head = false;   // client: the response's (final) HEADERS have arrived
  bool ending = false;     // no more messages will be queued: after them END_STREAM or trailers
  bool sent_end = false;   // END_STREAM, or the trailers that carry it, are submitted
  bool got_end = false;    // END_STREAM has arrived
  bool waiting = false;    // nghttp2 waits for nghttp2_session_resume_data()
  bool refuse_compressed = false;  // the trailers tell which encodings are accepted

  ReceivedFields fields;
  RequestHead head;  // server: until OnRequest; client: head.metadata of the reply, of head or trailers
  MessageReader reader;
  SendQueue queue;
  // Server: how the call ends, once `ending`.
  absl::Status end_status;
  Metadata end_metadata;
};

}  // namespace curtail::wire::internal
