// SPDX-License-Identifier: Apache-2.0
#include "curtail/store/store_testing.h"

#include <fcntl.h>
#include <poll.h>
#include <pwd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <utility>

#include "curtail/base/clock.h"
#include "curtail/base/testing.h"

namespace curtail {
namespace {

[[noreturn]] void Fail(const char* what) {
  std::perror(what);
  std::abort();
}

// -1 when no process listens there.
int Connect(const std::string& path) {
  sockaddr_un address{.sun_family = AF_UNIX};
  std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) Fail("socket");
  if (connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return fd;
  close(fd);
  return -1;
}

std::string Name() {
  const passwd* const user = getpwuid(geteuid());
  return user == nullptr ? "root" : user->pw_name;
}

std::vector<std::string> With(std::vector<std::string> words, std::vector<std::string> more) {
  std::move(more.begin(), more.end(), std::back_inserter(words));
  return words;
}

}  // namespace

StoreProcess::StoreProcess(std::string path, std::vector<std::string> words)
    : path_(std::move(path)), words_(std::move(words)) {
  Start();
}

void StoreProcess::Start() {
  if (!TryStart()) Fail(words_.front().c_str());
}

bool StoreProcess::TryStart() {
  unlink(path_.c_str());
  auto process = deploy::Process::Spawn({.name = words_.front(), .argv = words_, .out_to_log = true});
  if (!process.ok()) Fail(process.status().ToString().c_str());
  process_ = *std::move(process);
  const Deadline deadline = Deadline::In(kMaxTestWait);
  int fd;
  while ((fd = Connect(path_)) < 0) {
    if (deadline.Expired()) Fail(words_.front().c_str());
    if (!process_->Running()) return false;
    poll(nullptr, 0, 1);  // between looks; nothing tells when a process listens
  }
  close(fd);
  return true;
}

void StoreProcess::Kill() { process_->Kill(); }

void StoreProcess::AwaitEnd() {
  if (!process_->AwaitEnd(Deadline::In(kMaxTestWait))) Fail("the store does not end");
}

void StoreProcess::Stall() {
  process_->Pause();
  if (!process_->Running()) Fail("the store is gone");
}

void StoreProcess::GoOn() { process_->Resume(); }

// Its own user, so that it changes none: that would take the signal of the parent's death away.
MemcachedProcess::MemcachedProcess(const std::string& path, std::vector<std::string> extra)
    : StoreProcess(path,
                   With({"memcached", "-u", Name(), "-s", path, "-m", "64", "-t", "1"}, std::move(extra))) {}

RedisProcess::RedisProcess(const std::string& path, std::vector<std::string> extra,
                           std::vector<std::string> before)
    : StoreProcess(path, With(With(std::move(before),
                                   {"redis-server", "--unixsocket", path, "--port", "0", "--save", "",
                                    "--appendonly", "no", "--loglevel", "warning", "--logfile", "/dev/null"}),
                              std::move(extra))) {}

void RedisProcess::Start() {
  StoreProcess::Start();
  const Deadline deadline = Deadline::In(kMaxTestWait);
  constexpr std::string_view kPing = "PING\r\n";
  const int fd = Connect(path());
  if (fd < 0) Fail("redis-server is gone");
  const timeval patience{.tv_sec = 20};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  for (std::string answer; !answer.starts_with("+PONG");) {
    char bytes[256];
    if (deadline.Expired() || send(fd, kPing.data(), kPing.size(), MSG_NOSIGNAL) < 0)
      Fail("redis-server does not load");
    const ssize_t got = recv(fd, bytes, sizeof bytes, 0);
    if (got <= 0) Fail("no answer of redis-server");
    answer.assign(bytes, static_cast<size_t>(got));
  }
  close(fd);
}

void PostgresqlProcess::Start() {
  const Deadline deadline = Deadline::In(kMaxTestWait);
  while (!TryStart()) {
    if (deadline.Expired()) Fail("the old server does not end");
  }
}

std::optional<std::string> MemcachedProcess::Look(std::string_view key) const {
  const int fd = Connect(path());
  if (fd < 0) Fail("memcached is gone");
  const timeval patience{.tv_sec = 20};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  const std::string command = "get " + std::string(key) + "\r\n";
  if (send(fd, command.data(), command.size(), MSG_NOSIGNAL) < 0) Fail("send");
  std::string answer;
  while (!answer.ends_with("END\r\n")) {
    char bytes[65536];
    const ssize_t got = recv(fd, bytes, sizeof bytes, 0);
    if (got <= 0) Fail("no answer of memcached");
    answer.append(bytes, static_cast<size_t>(got));
  }
  close(fd);
  if (answer == "END\r\n") return std::nullopt;
  // "VALUE key flags size\r\n...\r\nEND\r\n"
  const size_t line = answer.find("\r\n") + 2;
  return answer.substr(line, answer.size() - line - 7);
}

}  // namespace curtail
