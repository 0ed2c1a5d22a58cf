// SPDX-License-Identifier: Apache-2.0
//
// Admission by credits with clients of two makes at one server: curtail's wait for credits, and grpc++'s sees ordinary
// gRPC.
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <atomic>
#include <deque>
#include <thread>
#include <vector>

#include "curtail/base/testing.h"
#include "echo.grpc.pb.h"
#include "servers.h"

namespace curtail::interop {
namespace {

using std::chrono::milliseconds;

// Event-driven calls of one of curtail's clients.
class OwnClient {
 public:
  explicit OwnClient(const std::string& target) : channel_(&client_, target, {.credits = true}) {}

  void Start(const EchoRequest& request, size_t calls) {
    for (size_t i = 0; i < calls; ++i)
      channel_.Start(Echo::kEcho.path, Deadline::In(kMaxTestWait), {}, request.SerializeAsString(),
                     &answers_.emplace_back());
  }
  void Poll() { client_.Poll(Deadline::In(milliseconds(1))); }
  size_t With(absl::StatusCode code) const {
    size_t count = 0;
    for (const Answer& answer : answers_) count += answer.done && answer.status.code() == code;
    return count;
  }
  bool AllEnded() const {
    for (const Answer& answer : answers_) {
      if (!answer.done) return false;
    }
    return true;
  }

 private:
  struct Answer final : Completion {
    void Done(absl::Status&& s, std::string&&) override { status = std::move(s), done = true; }
    bool done = false;
    absl::Status status;
  };
  Client client_;
  Channel channel_;
  std::deque<Answer> answers_;
};

uint64_t TimesRefused(Server& server, std::string_view reason) {
  for (const RefusalCount& refusal : server.Sample().refusals) {
    if (refusal.reason == reason) return refusal.times;
  }
  return 0;
}

TEST(CreditsInterop, OwnClientsWaitAndForeignOnesAreRefused) {
  Gate gate;
  ServerOptions options = OptionsFor("SDB1-64");
  // No request waits too long, and the pool stays as it is.
  options.admission = {
      .mode = AdmissionMode::kCredits, .target = 10 * kMaxTestWait, .interval = 10 * kMaxTestWait};
  const auto server = MustStart(std::move(options), MakeEchoService(&gate));
  const std::string address = server->addresses()[0];
  EchoRequest request;
  request.set_hang(true);

  OwnClient one(address), other(address);
  constexpr size_t kCalls = 6;
  one.Start(request, kCalls);
  other.Start(request, kCalls);
  for (const Deadline end = Deadline::In(kMaxTestWait);
       server->Sample().open_calls < 2 * CreditAccount::kFirst && !end.Expired();) {
    one.Poll();
    other.Poll();
  }
  EXPECT_EQ(server->Sample().open_calls, 2 * CreditAccount::kFirst) << "the others wait at their clients";

  const uint32_t floor = server->Sample().credits->total;
  constexpr uint32_t kTooMany = 5;
  std::atomic<uint32_t> served{0}, refused{0}, other_end{0}, wrong_metadata{0};
  std::vector<std::thread> foreign;
  const auto stub = peer::Echo::NewStub(grpc::CreateChannel(address, grpc::InsecureChannelCredentials()));
  for (uint32_t i = 0; i < floor + kTooMany; ++i) {
    foreign.emplace_back([&] {
      grpc::ClientContext context;
      context.set_deadline(std::chrono::system_clock::now() +
                           std::chrono::duration_cast<milliseconds>(kMaxTestWait));
      EchoReply reply;
      const grpc::Status status = stub->Echo(&context, request, &reply);
      const auto& trailing = context.GetServerTrailingMetadata();
      const bool exhausted = status.error_code() == grpc::RESOURCE_EXHAUSTED;
      wrong_metadata += trailing.count("curtail-credits") > 0;
      wrong_metadata += exhausted != (trailing.count("grpc-retry-pushback-ms") > 0);
      ++(status.ok() ? served : exhausted ? refused : other_end);
    });
  }
  for (const Deadline end = Deadline::In(kMaxTestWait); refused < kTooMany && !end.Expired();) BetweenLooks();
  EXPECT_EQ(refused, kTooMany);
  EXPECT_EQ(TimesRefused(*server, "no credit"), kTooMany);
  gate.Open();
  for (std::thread& thread : foreign) thread.join();
  EXPECT_EQ(served, floor);
  EXPECT_EQ(other_end, 0u);
  EXPECT_EQ(wrong_metadata, 0u);
  for (const Deadline end = Deadline::In(kMaxTestWait);
       !(one.AllEnded() && other.AllEnded()) && !end.Expired();) {
    one.Poll();
    other.Poll();
  }
  for (const OwnClient* client : {&one, &other}) {
    // While a foreign call was awaited some may have waited for as long as they may.
    EXPECT_EQ(client->With(absl::StatusCode::kOk) + client->With(absl::StatusCode::kResourceExhausted),
              kCalls);
    EXPECT_GE(client->With(absl::StatusCode::kOk), CreditAccount::kFirst);
  }
  EXPECT_EQ(TimesRefused(*server, "no credit"), kTooMany) << "none of curtail's clients' calls";
}

}  // namespace
}  // namespace curtail::interop
