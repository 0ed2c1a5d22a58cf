// SPDX-License-Identifier: Apache-2.0
#include "curtail/deploy/readiness.h"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <utility>
#include <vector>

#include "curtail/load/drive/one_call.h"
#include "curtail/load/message/workload.h"
#include "curtail/rpc/transport/socket.h"

namespace curtail::deploy {

namespace {

// "HOST:PORT" of a URL of a store, such as rediss://HOST:PORT?ca=FILE; any other text as it is.
std::string PlaceOf(const std::string& address) {
  const size_t scheme = address.find("://");
  if (scheme == std::string::npos) return address;
  const size_t begin = scheme + 3;
  return address.substr(begin, address.find_first_of("/?", begin) - begin);
}

}  // namespace

bool Accepts(const std::string& address, Nanos timeout) {
  const absl::StatusOr<std::vector<Address>> resolved = Address::ResolveAll(PlaceOf(address));
  if (!resolved.ok()) return false;
  for (const Address& at : *resolved) {
    const internal::UniqueFd fd(socket(at.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!fd) continue;
    bool connected = connect(fd.get(), reinterpret_cast<const sockaddr*>(&at.storage), at.size) == 0;
    if (!connected && errno == EINPROGRESS) {
      pollfd ready{fd.get(), POLLOUT, 0};
      int error = 0;
      socklen_t size = sizeof(error);
      connected = poll(&ready, 1, static_cast<int>(timeout / std::chrono::milliseconds(1))) == 1 &&
                  getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error == 0;
    }
    if (connected) return true;
  }
  return false;
}

absl::Status CheckHealth(const std::string& address, Nanos timeout, std::shared_ptr<const ClientTls> tls) {
  RunOptions options;
  options.targets = {address};
  options.channel.tls = std::move(tls);
  options.timeout = timeout;
  const absl::StatusOr<Answer> answer = CallOnce(options, FixedWorkload("/grpc.health.v1.Health/Check", ""));
  if (absl::IsNotFound(answer.status())) {
    return absl::UnimplementedError("its health service does not know the server as a whole");
  }
  if (!answer.ok()) return answer.status();
  if (answer->reply == "\x08\x01") return absl::OkStatus();  // status: SERVING
  return absl::UnavailableError("it answers health checks with NOT_SERVING");
}

absl::Status CheckReady(const ServiceSpec& service, const std::string& address, Nanos timeout,
                        std::shared_ptr<const ClientTls> tls) {
  if (!service.grpc()) {
    if (Accepts(address, timeout)) return absl::OkStatus();
    return absl::UnavailableError("nothing accepts connections there");
  }
  const absl::Status health = CheckHealth(address, timeout, std::move(tls));
  // It answered; that is all that a server without health checks can show.
  if (!service.IsHosted() && absl::IsUnimplemented(health)) return absl::OkStatus();
  return health;
}

std::string ReadyHint(const ServiceSpec& service, bool heard) {
  if (service.IsHosted() && !heard) {
    return "a curtail service prints \"ready ADDRESS\"; another program has hosted: false and listen";
  }
  if (!service.IsHosted() && service.grpc()) return "a server that speaks TLS, or no gRPC, has protocol: tcp";
  return "is that where it listens?";
}

}  // namespace curtail::deploy
