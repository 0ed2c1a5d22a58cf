// SPDX-License-Identifier: Apache-2.0
//
// Any bytes at all against a client Session that has several calls open. The first byte says whether valid
// SETTINGS go ahead, and whether parts of a valid reply do.

#include "curtail/wire/fuzz/fuzzing.h"

namespace curtail::wire::fuzz {
namespace {

// HEADERS on stream 1: ":status: 200" (static table) and "content-type: application/grpc" (literal).
constexpr std::string_view kReplyHead(
    "\0\0\x14\1\4\0\0\0\1"
    "\x88\x0f\x10\x10"
    "application/grpc",
    9 + 4 + 16);

// A message of one byte on stream 1, and trailers with grpc-status 0.
constexpr std::string_view kReplyMessage("\0\0\x06\0\0\0\0\0\1\0\0\0\0\1m", 9 + 6);
constexpr std::string_view kReplyTrailers(
    "\0\0\x0f\1\5\0\0\0\1"
    "\0\x0bgrpc-status\1"
    "0",
    9 + 15);

void StartCalls(Session& session, Responder& app) {
  RequestHead head;
  head.path = "/a.B/C";
  for (int i = 0; i < 6; ++i) {
    const bool unary = i % 2 == 0;
    const absl::StatusOr<StreamId> id =
        unary ? session.StartUnaryCall(head, "message", nullptr) : session.StartCall(head, nullptr);
    Require(id.ok());
    app.Started(*id);
    if (!unary) session.SendMessage(*id, std::string(30000, 'x'));
  }
}

}  // namespace
}  // namespace curtail::wire::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace curtail::wire;
  fuzz::Input input(data, size);
  const uint8_t mode = input.Byte();
  fuzz::Responder app(Role::kClient, input.Byte());
  Session session(Role::kClient, fuzz::SmallLimits(), &app);
  app.session = &session;
  fuzz::StartCalls(session, app);
  std::string out;
  if ((mode & 8) == 0) session.Pull(&out, 40000);
  absl::Status status;
  if ((mode & 3) != 0) status = session.Receive(fuzz::kEmptySettings);
  if ((mode & 3) == 3) status = session.Receive(fuzz::kReplyHead);
  if ((mode & 19) == 19) status = session.Receive(fuzz::kReplyMessage);
  if ((mode & 35) == 35) status = session.Receive(fuzz::kReplyTrailers);
  // The calls' events may abort the session.
  fuzz::Require(status.ok() || session.open_streams() == 0);
  fuzz::Drive(session, app, input, (mode & 4) != 0);
  return 0;
}
