// SPDX-License-Identifier: Apache-2.0
//
// session_testing.h - for the tests of Session: a recorder of events, a pump that moves bytes between two
// ends in random pieces, and a raw HTTP/2 peer that can say what a Session would not.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "curtail/base/testing.h"
#include "curtail/wire/output_testing.h"
#include "curtail/wire/session.h"

namespace curtail::wire {

// The events heard about one call.
struct CallLog {
  RequestHead request;
  std::optional<Metadata> head;
  std::vector<std::string> messages;
  bool request_ended = false;
  int ends = 0;
  absl::Status status;
  Metadata trailing;
  std::optional<std::string> unprocessed;  // the message that came back
};

// A Recorder keeps a log per stream and calls the hooks, which stand for an application. Thread-compatible.
class Recorder : public Events {
 public:
  std::map<StreamId, CallLog> calls;
  std::vector<uint64_t> pongs;
  std::optional<StreamId> goaway;
  std::string goaway_why;
  int late_events = 0;  // events of a stream that had ended
  TimePoint time{std::chrono::hours(1)};

  std::function<void(StreamId)> on_request, on_request_end, on_head, on_end, on_writable;
  std::function<void(StreamId, const std::string&)> on_message;

  void* OnRequest(StreamId id, RequestHead&& head) override {
    Log(id).request = std::move(head);
    if (on_request) on_request(id);
    return this;
  }
  void OnResponseHead(StreamId id, void*, Metadata&& metadata) override {
    Log(id).head = std::move(metadata);
    if (on_head) on_head(id);
  }
  void OnMessage(StreamId id, void*, std::string&& message) override {
    Log(id).messages.push_back(message);
    if (on_message) on_message(id, message);
  }
  void OnRequestEnd(StreamId id, void*) override {
    Log(id).request_ended = true;
    if (on_request_end) on_request_end(id);
  }
  void OnWritable(StreamId id, void*) override {
    if (on_writable) on_writable(id);
  }
  void OnCallUnprocessed(StreamId id, void*, std::string&& message) override {
    Log(id).unprocessed = std::move(message);
  }
  void OnCallEnd(StreamId id, void*, absl::Status&& status, Metadata&& trailing) override {
    CallLog& log = Log(id);
    ++log.ends;
    log.status = std::move(status);
    log.trailing = std::move(trailing);
    if (on_end) on_end(id);
  }
  void OnGoaway(StreamId last, std::string_view why) override { goaway = last, goaway_why = why; }
  void OnPong(uint64_t payload) override { pongs.push_back(payload); }
  TimePoint now() override { return time; }

 private:
  CallLog& Log(StreamId id) {
    CallLog& log = calls[id];
    if (log.ends > 0) ++late_events;
    return log;
  }
};

// Two Sessions face to face.
struct Pair {
  explicit Pair(const SessionOptions& options = {}, uint32_t seed = 1) : Pair(options, options, seed) {}
  Pair(const SessionOptions& client_options, const SessionOptions& server_options, uint32_t seed)
      : client(Role::kClient, client_options, &client_events),
        server(Role::kServer, server_options, &server_events),
        rng(seed) {}

  // Answers every finished request with its own messages.
  void ServeEcho() {
    server_events.on_message = [this](StreamId id, const std::string& m) {
      server.SendMessage(id, std::string(m));
    };
    server_events.on_request_end = [this](StreamId id) { server.EndCall(id, absl::OkStatus()); };
  }

  // Moves bytes both ways until both ends are silent. `largest_piece` bounds what one Receive() gets.
  absl::Status Pump(size_t largest_piece = 1 << 20) {
    absl::Status result;
    for (bool moved = true; moved && result.ok();) {
      moved = false;
      for (auto [from, to] : {std::pair(&client, &server), std::pair(&server, &client)}) {
        std::string bytes;
        if (const uint32_t way = rng() % 3; way == 0) {
          bytes = Gathered(from);
        } else {
          for (; way == 1 && !from->Ready().empty(); from->TookReady()) bytes += from->Ready();
          while (from->Pull(&bytes, bytes.size() + 1 + rng() % 70000)) continue;
        }
        moved = moved || !bytes.empty();
        if (absl::Status status = Deliver(to, bytes, largest_piece); !status.ok()) result = status;
      }
    }
    return result;
  }

  std::string Gathered(Session* from) {
    std::string bytes;
    for (bool more = true; more;) {
      Output output;
      more = from->Gather(&output, 1 + rng() % 70000);
      bytes += Joined(output);
      EXPECT_EQ(output.size, Joined(output).size());
      from->Written();
    }
    return bytes;
  }

  absl::Status Deliver(Session* to, std::string_view bytes, size_t largest_piece) {
    while (!bytes.empty()) {
      const size_t n = std::min<size_t>(bytes.size(), 1 + rng() % largest_piece);
      if (absl::Status status = ReceiveByRooms(*to, bytes.substr(0, n), 1 + rng() % 4 * 1000); !status.ok())
        return status;
      bytes.remove_prefix(n);
    }
    return absl::OkStatus();
  }

  Recorder client_events, server_events;
  Session client, server;
  std::mt19937 rng;
};

// How a call begins.
inline RequestHead Head(std::string path = "/test.Echo/Call") {
  RequestHead head;
  head.path = std::move(path);
  return head;
}

// A unary call of the client.
inline StreamId StartUnary(Pair& pair, std::string message, const RequestHead& head = Head()) {
  absl::StatusOr<StreamId> id = pair.client.StartUnaryCall(head, std::move(message), nullptr);
  EXPECT_TRUE(id.ok()) << id.status();
  return id.value_or(0);
}

// Bytes of which no two neighbours are alike.
inline std::string Pattern(size_t size) {
  std::string bytes(size, '\0');
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(i * 2654435761u >> 13);
  return bytes;
}

}  // namespace curtail::wire
