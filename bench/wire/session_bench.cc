// SPDX-License-Identifier: Apache-2.0
//
// The cost of HTTP/2 and HPACK: a unary call through two Sessions face to face, both ends, no sockets.
//
// For instructions instead of times, run one size under callgrind twice and subtract:
//   valgrind --tool=callgrind session_bench --benchmark_filter=RoundTrip/64 --benchmark_min_time=0.01

#include <benchmark/benchmark.h>

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "curtail/wire/session.h"

namespace curtail::wire {
namespace {

// Answers each request with its own message, whose memory it uses again.
class EchoServer final : public Events {
 public:
  void* OnRequest(StreamId, RequestHead&&) override { return this; }
  void OnMessage(StreamId, void*, std::string&& message) override { message_.swap(message); }
  void OnRequestEnd(StreamId id, void*) override {
    session.SendMessage(id, std::move(message_));
    session.EndCall(id, absl::OkStatus());
  }
  void OnCallEnd(StreamId, void*, absl::Status&&, Metadata&&) override {}
  TimePoint now() override { return Now(); }

  Session session{Role::kServer, {}, this};

 private:
  std::string message_;
};

class CountingClient final : public Events {
 public:
  void OnMessage(StreamId, void*, std::string&& message) override { reply.swap(message); }
  void OnReply(StreamId, void*, std::string_view message) override {
    reply.assign(message);
    ++answered;
  }
  void OnCallEnd(StreamId, void*, absl::Status&& status, Metadata&&) override { answered += status.ok(); }
  TimePoint now() override { return Now(); }

  Session session{Role::kClient, {}, this};
  std::string reply;
  int64_t answered = 0;
};

// Moves what one end has to say to the other, through `bytes`.
bool Deliver(Session& from, Session& to, std::string& bytes) {
  bool all_well = true;
  for (bool more = true; more && all_well;) {
    bytes.clear();
    more = from.Pull(&bytes);
    all_well = to.Receive(bytes).ok();
  }
  return all_well;
}

void RoundTrip(benchmark::State& state) {
  EchoServer server;
  CountingClient client;
  RequestHead head;
  head.path = "/curtail.bench.Mid/Query";
  const std::string payload(static_cast<size_t>(state.range(0)), 'x');
  std::string message, bytes;
  for (auto _ : state) {
    head.timeout = std::chrono::microseconds(1'000'000 + client.answered % 1000);
    message.assign(payload);
    const int64_t before = client.answered;
    if (!client.session.StartUnaryCall(head, std::move(message), nullptr).ok()) break;
    // A large message waits for windows: several turns.
    for (int turn = 0; turn < 1000 && client.answered == before; ++turn) {
      if (!Deliver(client.session, server.session, bytes) || !Deliver(server.session, client.session, bytes))
        break;
    }
    if (client.answered == before || client.reply != payload) {
      state.SkipWithError("the call failed");
      break;
    }
  }
  state.SetItemsProcessed(client.answered);
}
BENCHMARK(RoundTrip)->ArgName("bytes")->Arg(0)->Arg(64)->Arg(1024)->Arg(64 << 10)->Arg(1 << 20);

}  // namespace
}  // namespace curtail::wire

BENCHMARK_MAIN();
