// SPDX-License-Identifier: Apache-2.0
//
// A client of any kind against an HTTP admin port that runs. The input says what it sends, in which pieces, and when it
// reads. Properties: the port ends the connection once its client has ended its side, holds a bounded memory, and what it
// sent are replies of HTTP/1.1.
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "curtail/base/boundary.h"
#include "curtail/base/internal/unique_fd.h"
#include "curtail/base/strings.h"
#include "curtail/exec/address.h"
#include "curtail/observe/http_admin.h"
#include "curtail/wire/fuzz/http_pieces.h"

namespace curtail::observe {
namespace {

using curtail::internal::UniqueFd;
using wire::fuzz::Input;
using wire::fuzz::Pieces;
using wire::fuzz::Require;

constexpr size_t kPage = 10'000;
constexpr size_t kMostHeld = 1 << 20;
constexpr int kMaxWaitMs = 10'000;

class Port {
 public:
  Port() {
    const auto address = Address::Resolve(Join("unix-abstract:http_admin_fuzz.", getpid()));
    Require(address.ok());
    address_ = *address;
    UniqueFd listener(socket(address_.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    Require(bind(listener.get(), address_.raw(), address_.size) == 0 && listen(listener.get(), 16) == 0);
    const auto page = [](const wire::HttpRequest&, const HttpAdminStats&) {
      return HttpAdminReply(200, "text/plain", std::string(kPage, 'p'));
    };
    auto admin = HttpAdmin::Start(std::move(listener), {.access = {.unix_socket = true}, .rate = 10'000'000},
                                  {{.path = "/", .get = page, .post = page}});
    Require(admin.ok());
    admin_ = *std::move(admin);
  }
  UniqueFd Connect() const {
    UniqueFd client(socket(address_.family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
    Require(connect(client.get(), address_.raw(), address_.size) == 0);
    return client;
  }
  HttpAdminStats stats() const { return admin_->stats(); }

 private:
  Address address_;
  std::unique_ptr<HttpAdmin> admin_;
};

// Reads what has come; with `all`, up to the end.
void Read(int client, bool all, std::string* replies) {
  std::array<char, 8192> buffer;
  while (true) {
    pollfd readable{client, POLLIN, 0};
    const int ready = poll(&readable, 1, all ? kMaxWaitMs : 0);
    if (ready == 0 && !all) return;
    if (ready < 0 && errno == EINTR) continue;  // libFuzzer's clock
    Require(ready == 1);
    const ssize_t n = recv(client, buffer.data(), buffer.size(), 0);
    if (n <= 0) return;
    replies->append(buffer.data(), static_cast<size_t>(n));
  }
}

void Run(const Port& port, Input input) {
  const UniqueFd client = port.Connect();
  Pieces pieces(input, /*http2=*/false);
  std::string replies;
  while (!input.empty()) {
    const std::string piece = pieces.Next();
    if (input.Byte() % 4 == 0) Read(client.get(), /*all=*/false, &replies);
    if (send(client.get(), piece.data(), piece.size(), MSG_NOSIGNAL | MSG_DONTWAIT) < 0) break;
  }
  shutdown(client.get(), SHUT_WR);
  Read(client.get(), /*all=*/true, &replies);
  Require(std::string_view(replies).substr(0, 9) == std::string_view("HTTP/1.1 ").substr(0, replies.size()));
  Require(port.stats().held < kMostHeld && ContainedExceptions() == 0);
}

}  // namespace
}  // namespace curtail::observe

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const curtail::observe::Port port;
  curtail::observe::Run(port, curtail::wire::fuzz::Input(data, size));
  return 0;
}
