// SPDX-License-Identifier: Apache-2.0
//
// Any bytes at all against a server Session. The first byte says whether a valid preface goes ahead, and
// whether a valid request does.

#include "curtail/wire/fuzz/fuzzing.h"

namespace curtail::wire::fuzz {
namespace {

// The frames of one request on stream 1, made by a client Session; without its preface and SETTINGS.
std::string ValidRequest() {
  struct Silent : Events {
    void OnMessage(StreamId, void*, std::string&&) override {}
    void OnCallEnd(StreamId, void*, absl::Status&&, Metadata&&) override {}
    TimePoint now() override { return {}; }
  } silent;
  Session client(Role::kClient, {}, &silent);
  std::string preface, request;
  client.Pull(&preface);
  RequestHead head;
  head.path = "/a.B/C";
  head.timeout = std::chrono::seconds(1);
  head.metadata.Add("k-bin", "v");
  const absl::StatusOr<StreamId> id = client.StartCall(head, nullptr);
  Require(id.ok());
  client.SendMessage(*id, "message");
  client.Pull(&request);
  return request;
}

}  // namespace
}  // namespace curtail::wire::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace curtail::wire;
  static const std::string request = fuzz::ValidRequest();
  fuzz::Input input(data, size);
  const uint8_t mode = input.Byte();
  fuzz::Responder app(Role::kServer, input.Byte());
  Session session(Role::kServer, fuzz::SmallLimits(), &app);
  app.session = &session;
  absl::Status status;
  if ((mode & 3) != 0) {
    std::string preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    preface += fuzz::kEmptySettings;
    status = session.Receive(preface);
    fuzz::Require(status.ok());
  }
  if ((mode & 3) == 3) status = session.Receive(request);
  fuzz::Drive(session, app, input, (mode & 4) != 0);
  return 0;
}
