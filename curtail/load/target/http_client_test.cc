// SPDX-License-Identifier: Apache-2.0
//
// The client of HTTP/1.1 against servers that follow a script, honest or not. tests/tool has servers by others.
#include "curtail/load/target/http_client.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "curtail/base/mutex.h"
#include "curtail/base/strings.h"
#include "curtail/base/testing.h"
#include "curtail/load/drive/runner.h"
#include "curtail/load/message/http_workload.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace curtail::internal {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

constexpr std::string_view kOk = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

// One connection of a server, on a thread of its own.
class Peer {
 public:
  explicit Peer(int fd) : fd_(fd) {}
  // The next request with its body; empty once the client has closed.
  std::string Read() {
    size_t end = std::string::npos;
    while ((end = in_.find("\r\n\r\n")) == std::string::npos) {
      if (!More()) return {};
    }
    const size_t field = in_.find("content-length: ");
    const size_t body = field < end ? std::stoul(in_.substr(field + 16)) : 0;
    while (in_.size() < end + 4 + body) {
      if (!More()) return {};
    }
    std::string request = in_.substr(0, end + 4 + body);
    in_.erase(0, request.size());
    return request;
  }
  void Write(std::string_view bytes) const {
    while (!bytes.empty()) {
      const ssize_t n = send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n <= 0) return;
      bytes.remove_prefix(static_cast<size_t>(n));
    }
  }

 private:
  bool More() {
    char bytes[4096];
    const ssize_t n = recv(fd_, bytes, sizeof bytes, 0);
    if (n <= 0) return false;
    in_.append(bytes, static_cast<size_t>(n));
    return true;
  }
  const int fd_;
  std::string in_;
};

// A ScriptServer runs its script for each connection, whose number it tells, and closes the connection then.
class ScriptServer {
 public:
  using Script = std::function<void(Peer& peer, int number)>;

  explicit ScriptServer(Script script) : script_(std::move(script)) {
    absl::StatusOr<UniqueFd> fd = Listen(*Address::Resolve("127.0.0.1:0"));
    EXPECT_TRUE(fd.ok()) << fd.status();
    listener_ = *std::move(fd);
    const int flags = fcntl(listener_.get(), F_GETFL);
    fcntl(listener_.get(), F_SETFL, flags & ~O_NONBLOCK);
    acceptor_ = std::thread([this] { Accept(); });
  }
  ~ScriptServer() {
    stopping_ = true;
    shutdown(listener_.get(), SHUT_RDWR);
    acceptor_.join();
    {
      MutexLock lock(mu_);
      for (const int fd : open_) shutdown(fd, SHUT_RDWR);
    }
    for (std::thread& thread : threads_) thread.join();
  }
  ScriptServer(const ScriptServer&) = delete;
  ScriptServer& operator=(const ScriptServer&) = delete;

  std::string url() const { return Join("http://", BoundAddress(listener_.get()), "/path"); }
  int connections() const { return accepted_; }
  int closed() const { return closed_; }

 private:
  void Accept() {
    while (!stopping_) {
      const int fd = accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC);
      if (fd < 0) return;
      {
        MutexLock lock(mu_);
        open_.push_back(fd);
      }
      threads_.emplace_back([this, fd, number = accepted_++] {
        Peer peer(fd);
        script_(peer, number);
        MutexLock lock(mu_);
        std::erase(open_, fd);
        close(fd);
        ++closed_;
      });
    }
  }

  const Script script_;
  UniqueFd listener_;
  std::atomic<bool> stopping_{false};  // a flag alone
  std::atomic<int> accepted_{0};       // a counter alone
  std::atomic<int> closed_{0};         // a counter alone
  Mutex mu_;
  std::vector<int> open_ CURTAIL_GUARDED_BY(mu_);
  std::vector<std::thread> threads_;  // the acceptor's until it ends
  std::thread acceptor_;
};

struct Answer final : LoadCompletion {
  absl::Status status;
  std::string reply;
  bool done = false;
  void Done(absl::Status&& s, std::string&& r) override {
    status = std::move(s), reply = std::move(r), done = true;
  }
};

RunOptions OptionsFor(const std::string& url) {
  RunOptions options;
  options.targets = {url};
  options.http = HttpOptions{.verb = "POST"};
  return options;
}

class Asker {
 public:
  explicit Asker(const RunOptions& options) : client_(MakeLoadClient(options)) {
    const absl::Status resolved = client_->Resolve();
    EXPECT_TRUE(resolved.ok()) << resolved;
  }
  void Start(Answer* answer, std::string_view body = "", Nanos timeout = kMaxTestWait) {
    client_->Start(0, "", Deadline::In(timeout), metadata, body, answer);
  }
  void Await(const Answer& answer) {
    const Deadline limit = Deadline::In(2 * kMaxTestWait);
    while (!answer.done && !limit.Expired()) client_->Poll(limit);
    EXPECT_TRUE(answer.done);
  }
  Answer Ask(std::string_view body = "", Nanos timeout = kMaxTestWait) {
    Answer answer;
    Start(&answer, body, timeout);
    Await(answer);
    return answer;
  }
  LoadClient& client() { return *client_; }
  Metadata metadata;

 private:
  const std::unique_ptr<LoadClient> client_;
};

// Answers all requests alike.
ScriptServer::Script Always(std::string reply) {
  return [reply = std::move(reply)](Peer& peer, int) {
    while (!peer.Read().empty()) peer.Write(reply);
  };
}

TEST(HttpClient, AsksAgainOnTheConnectionThatItHas) {
  ScriptServer server([](Peer& peer, int) {
    for (std::string request; !(request = peer.Read()).empty();) {
      peer.Write(Join("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"));
      peer.Write(Join("3\r\nab", "c\r\n1\r\n!\r\n0\r\n\r\n"));
      peer.Read();
      peer.Write(Join("HTTP/1.1 200 OK\r\nContent-Length: ", request.size(), "\r\n\r\n", request));
    }
  });
  Asker asker(OptionsFor(server.url()));
  asker.metadata.Add("X-Id", "7");
  const Answer chunks = asker.Ask("{}");
  EXPECT_TRUE(chunks.status.ok()) << chunks.status;
  EXPECT_EQ(chunks.reply, "abc!");
  const Answer echo = asker.Ask();
  EXPECT_TRUE(echo.status.ok()) << echo.status;
  EXPECT_THAT(echo.reply, testing::StartsWith("POST /path HTTP/1.1\r\nhost: 127.0.0.1:"));
  EXPECT_THAT(echo.reply, HasSubstr("\r\nx-id: 7\r\nuser-agent: curtail"));
  EXPECT_THAT(echo.reply, testing::EndsWith("\r\ncontent-length: 2\r\n\r\n{}"));
  EXPECT_EQ(server.connections(), 1);
  EXPECT_TRUE(asker.client().Answered(0));
}

TEST(HttpClient, AStatusOtherThan2xxIsAFailureWithItsNumber) {
  ScriptServer server(Always("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"));
  Asker asker(OptionsFor(server.url()));
  const Answer answer = asker.Ask();
  EXPECT_EQ(answer.status.raw_code(), 404);
  EXPECT_EQ(Message(answer.status), "Not Found");
  EXPECT_TRUE(asker.client().Answered(0));
}

TEST(HttpClient, ConnectsAnewWhereTheServerCloses) {
  ScriptServer server([](Peer& peer, int number) {
    if (number % 2 == 0) {
      peer.Read();
      peer.Write("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok");
      peer.Read();  // until the client closes
    } else {
      peer.Read();
      peer.Write("HTTP/1.0 200 OK\r\n\r\nuntil the end");
    }
  });
  Asker asker(OptionsFor(server.url()));
  EXPECT_EQ(asker.Ask().reply, "ok");
  EXPECT_EQ(asker.Ask().reply, "until the end");
  EXPECT_EQ(asker.Ask().reply, "ok");
  EXPECT_EQ(server.connections(), 3);
}

// Property: long replies on many connections together take a bounded memory. Of eight, four find room.
TEST(HttpClient, HoldsFourOfTheLongestReplies) {
  std::atomic<bool> go_on{false};
  constexpr size_t kBytes = 900'000;
  ScriptServer server([&](Peer& peer, int) {
    peer.Read();
    peer.Write(Join("HTTP/1.1 200 OK\r\nContent-Length: ", kBytes + 2, "\r\n\r\n", std::string(kBytes, 'x')));
    for (const Deadline limit = Deadline::In(kMaxTestWait); !go_on && !limit.Expired();) BetweenLooks();
    peer.Write("ok");
    peer.Read();
  });
  RunOptions options = OptionsFor(server.url());
  options.channel.connections = 8;
  options.channel.max_message_bytes = 1'000'000;
  Asker asker(options);
  std::vector<Answer> answers(8);
  for (Answer& answer : answers) asker.Start(&answer);
  const auto ended = [&] {
    return std::count_if(answers.begin(), answers.end(), [](auto& a) { return a.done; });
  };
  const Deadline limit = Deadline::In(kMaxTestWait);
  while (ended() < 4 && !limit.Expired()) asker.client().Poll(limit);
  go_on = true;
  for (const Answer& answer : answers) asker.Await(answer);
  int whole = 0;
  for (const Answer& answer : answers) {
    whole += answer.status.ok();
    EXPECT_EQ(answer.reply.size(), answer.status.ok() ? kBytes + 2 : 0);
    EXPECT_TRUE(answer.status.ok() || Message(answer.status).find("fewer connections") != std::string::npos)
        << answer.status;
  }
  EXPECT_EQ(whole, 4);
}

TEST(HttpClient, SaysHowAServerBrokeOff) {
  ScriptServer server([](Peer& peer, int number) {
    peer.Read();
    if (number == 1) peer.Write("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhe");
    if (number == 2) peer.Write("220 mail.example ESMTP\r\n"), peer.Read();
    if (number == 3) peer.Write("HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n"), peer.Read();
    if (number == 4) peer.Write(Join(kOk, "junk")), peer.Read();
  });
  Asker asker(OptionsFor(server.url()));
  for (int i = 0; i < 2; ++i) {
    const Answer closed = asker.Ask();
    EXPECT_TRUE(absl::IsUnavailable(closed.status)) << closed.status;
    EXPECT_THAT(Message(closed.status), HasSubstr("closed by the server"));
  }
  EXPECT_THAT(Message(asker.Ask().status), HasSubstr("broke HTTP/1.1"));
  EXPECT_TRUE(absl::IsResourceExhausted(asker.Ask().status));
  EXPECT_TRUE(asker.Ask().status.ok()) << "the answer before the junk";
  EXPECT_THAT(Message(asker.Ask().status), HasSubstr("closed by the server")) << "on a new connection";
  EXPECT_EQ(server.connections(), 6);
}

TEST(HttpClient, GivesUpASilentServerAndItsConnection) {
  ScriptServer server([](Peer& peer, int number) {
    while (!peer.Read().empty()) {
      if (number > 0) peer.Write(kOk);
    }
  });
  Asker asker(OptionsFor(server.url()));
  EXPECT_TRUE(absl::IsDeadlineExceeded(asker.Ask("", std::chrono::milliseconds(50)).status));
  EXPECT_TRUE(asker.Ask().status.ok());
  EXPECT_EQ(server.connections(), 2);
}

TEST(HttpClient, ARequestWaitsForAFreeConnection) {
  ScriptServer server(Always(std::string(kOk)));
  Asker asker(OptionsFor(server.url()));
  Answer answers[3];
  for (Answer& answer : answers) asker.Start(&answer);
  EXPECT_THAT(asker.client().Warnings(), ElementsAre(HasSubstr("waited until one of 1 connections")));
  for (const Answer& answer : answers) {
    asker.Await(answer);
    EXPECT_TRUE(answer.status.ok()) << answer.status;
  }
  EXPECT_EQ(server.connections(), 1);
}

TEST(HttpClient, ARequestThatWaitsForAConnectionTimesOutToo) {
  ScriptServer server([](Peer& peer, int) {
    while (!peer.Read().empty()) continue;
  });
  Asker asker(OptionsFor(server.url()));
  Answer first, second;
  asker.Start(&first, "", kMaxTestWait);
  asker.Start(&second, "", std::chrono::milliseconds(50));
  asker.Await(second);
  EXPECT_TRUE(absl::IsDeadlineExceeded(second.status)) << second.status;
  EXPECT_FALSE(first.done);
  // The first is dropped with the client: its completion never runs.
}

TEST(HttpClient, FailsAtOnceWhereNoServerListens) {
  std::string url;
  {
    url = ScriptServer(Always("")).url();
  }
  Asker asker(OptionsFor(url));
  for (int i = 0; i < 3; ++i) {
    const Answer answer = asker.Ask();
    EXPECT_TRUE(absl::IsUnavailable(answer.status)) << answer.status;
    EXPECT_THAT(Message(answer.status), HasSubstr("cannot connect"));
  }
  EXPECT_FALSE(asker.client().Answered(0));
}

TEST(HttpClient, NoticesThatAServerHasClosedAnIdleConnection) {
  ScriptServer server([](Peer& peer, int) {
    peer.Read();
    peer.Write(kOk);  // and goes, without a word
  });
  Asker asker(OptionsFor(server.url()));
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(asker.Ask().status.ok());
    const Deadline limit = Deadline::In(kMaxTestWait);
    while (server.closed() == i && !limit.Expired()) BetweenLooks();
    asker.client().Poll(Deadline::At(TimePoint()));  // the close has come by now
  }
  EXPECT_EQ(server.connections(), 3);
}

TEST(HttpClient, CarriesWholeRuns) {
  std::atomic<int> asked{0};
  ScriptServer server([&asked](Peer& peer, int) {
    for (std::string request; !(request = peer.Read()).empty();) {
      const bool good = ++asked % 4 != 0 && request.ends_with("}");
      peer.Write(good ? kOk : std::string_view("HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n"));
    }
  });
  RunOptions options = OptionsFor(server.url());
  options.channel.connections = 4;
  options.timeout = kMaxTestWait;
  options.warmup = Nanos(0);
  options.requests = 200;
  options.metadata.Add("content-type", "application/json");
  const absl::StatusOr<std::unique_ptr<Workload>> workload =
      MakeHttpWorkload({.name = "POST /path HTTP/1.1", .bodies = {"{\"n\": {{index}}}"}}, 1);
  ASSERT_TRUE(workload.ok()) << workload.status();
  const absl::StatusOr<LoadResult> closed = RunClosedLoop(options, **workload, 4, kMaxTestWait);
  ASSERT_TRUE(closed.ok()) << closed.status();
  EXPECT_EQ(closed->sent, 200u);
  EXPECT_THAT(closed->codes, ElementsAre(Pair("HTTP 503", 50), Pair("OK", 150)));
  EXPECT_THAT(closed->errors, ElementsAre(Pair("HTTP 503: Busy", 50)));
  const absl::StatusOr<Schedule> schedule =
      Schedule::Make(*RateCurve::Constant(500, std::chrono::seconds(10)), Gaps::kPoisson, 1);
  ASSERT_TRUE(schedule.ok()) << schedule.status();
  const absl::StatusOr<LoadResult> open = RunOpenLoop(options, **workload, *schedule);
  ASSERT_TRUE(open.ok()) << open.status();
  EXPECT_EQ(open->sent, 200u);
  EXPECT_THAT(open->codes, ElementsAre(Pair("HTTP 503", 50), Pair("OK", 150)));
}

TEST(HttpClient, ARunNeedsAServerThatSpeaksItsProtocol) {
  ScriptServer server([](Peer& peer, int) {
    peer.Read();
    peer.Write("\r\n\r\n");
  });
  const absl::StatusOr<std::unique_ptr<Workload>> workload = MakeHttpWorkload({.name = "GET /"}, 1);
  ASSERT_TRUE(workload.ok());
  RunOptions options = OptionsFor(server.url());
  const absl::Status wrong = RunClosedLoop(options, **workload, 1, std::chrono::seconds(1)).status();
  EXPECT_TRUE(absl::IsUnavailable(wrong)) << wrong;
  EXPECT_THAT(Message(wrong), HasSubstr("broke HTTP/1.1"));
  options.targets = {"host:80"};
  EXPECT_TRUE(
      absl::IsInvalidArgument(RunClosedLoop(options, **workload, 1, std::chrono::seconds(1)).status()));
}

}  // namespace
}  // namespace curtail::internal
