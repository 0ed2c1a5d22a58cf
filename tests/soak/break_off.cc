// SPDX-License-Identifier: Apache-2.0
//
// Peers of the soak test that speak HTTP/2 by hand and do not end what they begin.
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <vector>

#include "caller.h"
#include "curtail/exec/address.h"
#include "curtail/wire/session.h"
#include "soak.curtail.h"

namespace curtail::soak {
namespace {

class NoEvents final : public wire::Events {
 public:
  void OnMessage(wire::StreamId, void*, std::string&&) override {}
  void OnCallEnd(wire::StreamId, void*, absl::Status&&, Metadata&&) override {}
  TimePoint now() override { return Now(); }
};

// A socket that closes by a reset of its connection, if it has one.
class Socket {
 public:
  explicit Socket(const std::string& address) {
    const absl::StatusOr<Address> to = Address::Resolve(address);
    if (!to.ok()) return;
    fd_ = socket(to->family(), SOCK_STREAM | SOCK_CLOEXEC, 0);
    const timeval patience{.tv_sec = 1, .tv_usec = 0};
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
    const linger reset{.l_onoff = 1, .l_linger = 0};
    setsockopt(fd_, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
    connected_ = connect(fd_, to->raw(), to->size) == 0;
  }
  ~Socket() {
    if (fd_ >= 0) close(fd_);
  }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  bool connected() const { return connected_; }
  bool Send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t n = send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n <= 0) return false;
      bytes.remove_prefix(static_cast<size_t>(n));
    }
    return true;
  }
  // The bytes that are there, or come within a second.
  void Receive(wire::Session& session) {
    char bytes[16 << 10];
    const ssize_t n = recv(fd_, bytes, sizeof(bytes), 0);
    if (n > 0) session.Receive({bytes, static_cast<size_t>(n)}).IgnoreError();
  }

 private:
  int fd_ = -1;
  bool connected_ = false;
};

std::string Output(wire::Session& session) {
  std::string out;
  while (session.Pull(&out)) continue;
  return out;
}

// Begins a stream, without its end.
void Open(wire::Session& session, Planner& planner, std::vector<wire::StreamId>* streams) {
  wire::RequestHead head;
  head.path =
      std::string(planner.Chance(0.5) ? "/curtail.soak.Streams/Chat" : "/curtail.soak.Streams/Upload");
  const auto id = session.StartCall(head, nullptr);
  if (!id.ok()) return;
  Packet packet;
  packet.set_payload(planner.Payload(32u << 10));
  session.SendMessage(*id, packet.SerializeAsString());
  streams->push_back(*id);
}

}  // namespace

void BreakOffAt(const std::string& address, Planner& planner) {
  Socket socket(address);
  if (!socket.connected()) return;
  NoEvents events;
  wire::Session session(wire::Role::kClient, {}, &events);
  std::vector<wire::StreamId> streams;
  const size_t count = 1 + planner.rng().Below(20);
  for (size_t i = 0; i < count; ++i) Open(session, planner, &streams);
  std::string bytes = Output(session);
  if (planner.Chance(0.3)) bytes.resize(planner.rng().Below(bytes.size() + 1));
  if (!socket.Send(bytes) || planner.Chance(0.3)) return;
  socket.Receive(session);
  if (planner.Chance(0.5)) {
    for (const wire::StreamId id : streams) session.Cancel(id);
  }
  std::string rest = Output(session);
  if (planner.Chance(0.3)) rest += planner.Payload(1u << 10);
  if (socket.Send(rest) && planner.Chance(0.5)) socket.Receive(session);
}

}  // namespace curtail::soak
