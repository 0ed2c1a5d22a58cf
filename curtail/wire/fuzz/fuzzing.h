// SPDX-License-Identifier: Apache-2.0
//
// fuzzing.h - what the two fuzz targets share: reading choices from the input, checking the promises of
// Session, and driving one end with the bytes of a peer that is steered by the input.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <set>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "curtail/wire/output_testing.h"
#include "curtail/wire/session.h"

namespace curtail::wire::fuzz {

// A breach of a promise: libFuzzer reports the abort with its input.
inline void Require(bool holds) {
  if (!holds) std::abort();
}

// An Input hands out the fuzzer's bytes; zeros when there are no more.
class Input {
 public:
  Input(const uint8_t* data, size_t size) : rest_(reinterpret_cast<const char*>(data), size) {}
  bool empty() const { return rest_.empty(); }
  uint8_t Byte() {
    const std::string_view taken = Bytes(1);
    return taken.empty() ? 0 : static_cast<uint8_t>(taken[0]);
  }
  std::string_view Bytes(size_t n) {
    const std::string_view taken = rest_.substr(0, n);
    rest_.remove_prefix(taken.size());
    return taken;
  }

 private:
  std::string_view rest_;
};

// An application that answers, cancels and aborts as its own stream of choices says, and checks that every
// stream ends exactly once and has no events after its end.
class Responder : public Events {
 public:
  Responder(Role role, uint8_t seed) : role_(role), choices_(seed) {}
  Session* session = nullptr;

  void Started(StreamId id) { open_.insert(id); }
  size_t open() const { return open_.size(); }

  void* OnRequest(StreamId id, RequestHead&& head) override {
    Require(role_ == Role::kServer && open_.insert(id).second && !head.path.empty());
    Act(id);
    return this;
  }
  void OnResponseHead(StreamId id, void*, Metadata&&) override { Check(id), Act(id); }
  void OnMessage(StreamId id, void*, std::string&& message) override {
    Check(id);
    Require(message.size() <= kMaxMessage);
    Act(id);
  }
  void OnRequestEnd(StreamId id, void*) override {
    Check(id);
    session->EndCall(id, absl::OkStatus());
  }
  void OnCallUnprocessed(StreamId id, void*, std::string&& message) override {
    Check(id);
    Require(role_ == Role::kClient && (message.empty() || message == "message"));
  }
  void OnCallEnd(StreamId id, void*, absl::Status&&, Metadata&&) override {
    Require(open_.erase(id) == 1);
    Act(id);
  }

  TimePoint now() override { return time_ += std::chrono::milliseconds(1); }

  // Calls the session as an owner would between two events.
  void Act(StreamId id) {
    choices_ = choices_ * 1664525u + 1013904223u;
    switch (choices_ >> 28) {
      case 0:
        return session->Cancel(id);
      case 1:
        return session->EndCall(id, absl::AbortedError("50%\n"));
      case 2:
        return session->SendMessage(id, std::string(choices_ >> 12 & 0x7fff, 'x'));
      case 3:
        return session->SendPing(choices_);
      case 4:
        return session->EndRequest(id);
      case 5:
        return session->SendHead(id, {});
      case 6:
        if ((choices_ >> 20 & 0xff) == 0) session->Abort(absl::UnavailableError("abort"));
        return;
      case 7:
        if ((choices_ >> 20 & 0xff) < 16) session->SendGoaway();
        return;
      default:
        return;
    }
  }

  static constexpr size_t kMaxMessage = 5000;

 private:
  void Check(StreamId id) { Require(open_.count(id) == 1); }

  const Role role_;
  uint32_t choices_;
  TimePoint time_{std::chrono::hours(1)};
  std::set<StreamId> open_;
};

inline SessionOptions SmallLimits() {
  SessionOptions options;
  options.max_message_bytes = Responder::kMaxMessage;
  options.max_partial_bytes = 8000;
  options.max_header_bytes = 2000;
  options.max_concurrent_streams = 20;
  options.stream_window_bytes = 70000;
  return options;
}

// A SETTINGS frame without entries.
inline constexpr std::string_view kEmptySettings("\0\0\0\4\0\0\0\0\0", 9);

// Feeds the rest of `input` in pieces whose size it chooses: either raw bytes, or (so that mutations get past
// the framing) a frame of chosen type, flags and stream with the length field made right.
inline void Drive(Session& session, Responder& app, Input& input, bool make_frames) {
  bool usable = true;
  std::string out;
  while (usable && !input.empty()) {
    const uint8_t size = input.Byte();
    std::string piece;
    if (make_frames && (size & 1) != 0) {
      const uint8_t type = input.Byte() % 10;
      const uint8_t flags = input.Byte();
      const uint8_t stream = input.Byte() % 16;
      const std::string_view payload = input.Bytes(size / 2);
      piece = {0, 0, static_cast<char>(payload.size()), static_cast<char>(type), static_cast<char>(flags), 0,
               0, 0, static_cast<char>(stream)};
      piece += payload;
    } else {
      piece = input.Bytes(size);
    }
    usable = ReceiveByRooms(session, piece, 1).ok();
    out.clear();
    Output gathered;
    if ((size & 6) == 2) session.Pull(&out, 1 + size * 100);
    if ((size & 6) == 6) session.Gather(&gathered, 1 + size * 100);
    if (!gathered.pieces.empty()) {
      app.Act(1);  // the pieces stay, whatever happens to their streams
      Require(Joined(gathered).size() == gathered.size);
      session.Written();
    }
    Require(session.open_streams() == app.open());
    if (session.Finished()) break;
  }
  for (int i = 0; i < 1000 && session.Pull(&out); ++i) continue;
  session.Abort(absl::UnavailableError("closed"));
  Require(app.open() == 0 && session.open_streams() == 0 && session.queued_bytes() == 0);
}

}  // namespace curtail::wire::fuzz
