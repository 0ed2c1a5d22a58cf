// SPDX-License-Identifier: Apache-2.0
//
// Requests over streams, against a server in this process.
#include "curtail/load/target/stream_client.h"

#include <gmock/gmock.h>

#include <atomic>
#include <string>
#include <vector>

#include "curtail/base/gate_testing.h"
#include "curtail/base/testing.h"
#include "curtail/load/drive/runner.h"
#include "curtail/load/message/workload.h"
#include "curtail/rpc/server.h"

namespace curtail::internal {
namespace {

using testing::HasSubstr;
using Kind = StreamOptions::Kind;

// Chat answers each message with itself, "twice" with two, "end" by its end, and "wait" when the gate opens. Upload
// answers with the number of messages. Watch sends as many as it is asked for, and then ends as it is asked to.
class Streams final : public Service {
 public:
  Streams(Gate* gate, std::atomic<int>* chats) : gate_(gate), chats_(chats) {}
  std::string_view FullName() const override { return "test.Streams"; }
  std::vector<MethodHandler> Handlers() override {
    return {Make("Chat", [this](MessageStream& stream) { return Chat(stream); }), Make("Upload", Upload),
            Make("Watch", Watch)};
  }

 private:
  template <class F>
  static MethodHandler Make(const char* name, F run) {
    MethodHandler handler;
    handler.name = name;
    handler.kind = MethodHandler::Kind::kStream;
    handler.stream = [run](Context&, MessageStream& stream) -> absl::Status { return run(stream); };
    return handler;
  }
  absl::Status Chat(MessageStream& stream) {
    ++*chats_;
    int read = 0;
    for (std::string message; stream.Read(&message);) {
      ++read;
      if (message == "end") return absl::OkStatus();
      if (message == "count") message = std::to_string(read);
      if (message == "wait") gate_->Pass();
      if (message == "twice") stream.Write(std::string(message));
      stream.Write(std::move(message));
    }
    return stream.status();
  }
  static absl::Status Upload(MessageStream& stream) {
    int count = 0;
    for (std::string message; stream.Read(&message);) ++count;
    if (count == 13) return absl::OkStatus();
    stream.Write(std::to_string(count));
    return stream.status();
  }
  static absl::Status Watch(MessageStream& stream) {
    std::string message;
    stream.Read(&message);
    if (message == "refuse") return absl::ResourceExhaustedError("try later");
    for (int i = 0; i < std::stoi(message); ++i) stream.Write(std::string(1000, 'x'));
    return absl::OkStatus();
  }

  Gate* const gate_;
  std::atomic<int>* const chats_;
};

struct Outcome final : LoadCompletion {
  bool done = false;
  absl::Status status;
  std::string reply;
  void Done(absl::Status&& s, std::string&& r) override {
    EXPECT_FALSE(done);
    status = std::move(s), reply = std::move(r), done = true;
  }
};

class StreamClientTest : public testing::Test {
 protected:
  static std::unique_ptr<Server> StartServer(Gate* gate, std::atomic<int>* chats) {
    ServerOptions options;
    options.listen = {"127.0.0.1:0"};
    options.config = *Config::Parse("SIB1");  // a handler that waits holds up no other
    std::vector<std::unique_ptr<Service>> services;
    services.push_back(std::make_unique<Streams>(gate, chats));
    auto server = Server::Start(std::move(options), std::move(services));
    EXPECT_TRUE(server.ok()) << server.status();
    return *std::move(server);
  }
  RunOptions Options(Kind kind, int count) const {
    RunOptions options;
    options.targets = {server_->addresses()[0]};
    options.stream = StreamOptions{kind, count};
    options.warmup = Nanos(0);
    options.timeout = kMaxTestWait;
    return options;
  }
  void Connect(Kind kind, int count) { client_ = MakeLoadClient(Options(kind, count)); }
  void Start(const std::string& method, const std::string& message, Outcome* outcome,
             Deadline deadline = Deadline::In(kMaxTestWait)) {
    client_->Start(0, "/test.Streams/" + method, deadline, Metadata(), message, outcome);
  }
  void Await(const Outcome& outcome) {
    for (const Deadline end = Deadline::In(kMaxTestWait); !outcome.done && !end.Expired();)
      client_->Poll(Deadline::In(std::chrono::milliseconds(10)));
    ASSERT_TRUE(outcome.done);
  }
  Outcome Ask(const std::string& method, const std::string& message) {
    Outcome outcome;
    Start(method, message, &outcome);
    Await(outcome);
    return outcome;
  }

  Gate gate_;
  std::atomic<int> chats_{0};
  const std::unique_ptr<Server> server_ = StartServer(&gate_, &chats_);
  std::unique_ptr<LoadClient> client_;
};

TEST_F(StreamClientTest, MessagesTakeOpenStreamsInTurn) {
  Connect(Kind::kBoth, 3);
  std::vector<Outcome> outcomes(30);
  for (size_t i = 0; i < outcomes.size(); ++i) Start("Chat", std::to_string(i), &outcomes[i]);
  for (size_t i = 0; i < outcomes.size(); ++i) {
    Await(outcomes[i]);
    EXPECT_TRUE(outcomes[i].status.ok()) << outcomes[i].status;
    EXPECT_EQ(outcomes[i].reply, std::to_string(i));
  }
  EXPECT_EQ(chats_, 3);
  EXPECT_TRUE(client_->Answered(0));
}

TEST_F(StreamClientTest, AStreamThatEndsIsOpenedAgain) {
  Connect(Kind::kBoth, 1);
  const Outcome ended = Ask("Chat", "end");
  EXPECT_TRUE(absl::IsUnavailable(ended.status)) << ended.status;
  EXPECT_EQ(Ask("Chat", "again").reply, "again");
  EXPECT_EQ(chats_, 2);
}

TEST_F(StreamClientTest, ALateAnswerIsNotTakenForTheNextOnes) {
  Connect(Kind::kBoth, 1);
  Outcome late, next;
  Start("Chat", "wait", &late, Deadline::In(std::chrono::milliseconds(20)));
  Await(late);
  EXPECT_TRUE(absl::IsDeadlineExceeded(late.status)) << late.status;
  Start("Chat", "next", &next);
  client_->Poll(Deadline::At(TimePoint()));
  EXPECT_FALSE(next.done);
  gate_.Open();
  Await(next);
  EXPECT_EQ(next.reply, "next");
}

TEST_F(StreamClientTest, MessagesThatWereGivenUpUnsentAreForgotten) {
  Connect(Kind::kBoth, 1);
  std::vector<Outcome> late(300);
  Start("Chat", "wait", &late[0], Deadline::In(std::chrono::milliseconds(20)));
  for (size_t i = 1; i < late.size(); ++i)
    Start("Chat", std::string(65'536, 'x'), &late[i], Deadline::In(std::chrono::milliseconds(20)));
  for (const Outcome& outcome : late) {
    Await(outcome);
    EXPECT_TRUE(absl::IsDeadlineExceeded(outcome.status)) << outcome.status;
  }
  gate_.Open();
  const Outcome count = Ask("Chat", "count");
  ASSERT_TRUE(count.status.ok()) << count.status;
  EXPECT_LT(std::stoi(count.reply), 150) << "what the windows hold";
}

TEST_F(StreamClientTest, AMessageThatAnswersNoneIsAnError) {
  Connect(Kind::kBoth, 1);
  EXPECT_EQ(Ask("Chat", "twice").reply, "twice");
  // The second one comes now, or is taken for the answer to the next message, whose own is then one too many.
  for (const Deadline end = Deadline::In(kMaxTestWait); chats_ < 2 && !end.Expired();) Ask("Chat", "x");
  EXPECT_EQ(chats_, 2) << "the stream was given up";
}

TEST_F(StreamClientTest, ARequestIsAStreamOfMessagesAndItsReply) {
  Connect(Kind::kRequests, 1000);
  std::vector<Outcome> outcomes(3);
  for (Outcome& outcome : outcomes) Start("Upload", std::string(5000, 'x'), &outcome);
  for (const Outcome& outcome : outcomes) {
    Await(outcome);
    EXPECT_TRUE(outcome.status.ok()) << outcome.status;
    EXPECT_EQ(outcome.reply, "1000");
  }
  Connect(Kind::kRequests, 13);
  const Outcome none = Ask("Upload", "");
  EXPECT_TRUE(absl::IsUnimplemented(none.status)) << none.status;
}

TEST_F(StreamClientTest, ARequestIsAWholeStreamOfReplies) {
  Connect(Kind::kReplies, 1);
  for (const char* count : {"0", "1", "10000"}) {
    const Outcome outcome = Ask("Watch", count);
    EXPECT_TRUE(outcome.status.ok()) << outcome.status;
  }
  const Outcome refused = Ask("Watch", "refuse");
  EXPECT_TRUE(absl::IsResourceExhausted(refused.status)) << refused.status;
}

TEST_F(StreamClientTest, ADeadlineEndsAStream) {
  Connect(Kind::kReplies, 1);
  Outcome late;
  Start("Chat", "wait", &late, Deadline::In(std::chrono::milliseconds(20)));
  Await(late);
  EXPECT_TRUE(absl::IsDeadlineExceeded(late.status)) << late.status;
  gate_.Open();
}

TEST_F(StreamClientTest, WhereNoServerIsRequestsFail) {
  for (const Kind kind : {Kind::kBoth, Kind::kRequests, Kind::kReplies}) {
    RunOptions options = Options(kind, 1);
    options.targets = {"127.0.0.1:1"};
    client_ = MakeLoadClient(options);
    const Outcome outcome = Ask("Chat", "x");
    EXPECT_TRUE(absl::IsUnavailable(outcome.status)) << outcome.status;
  }
}

TEST_F(StreamClientTest, RequestsInFlightAreDroppedWithIt) {
  for (const Kind kind : {Kind::kBoth, Kind::kReplies}) {
    Connect(kind, 1);
    Outcome waits, not_sent;
    Start("Chat", "wait", &waits);
    client_->Poll(Deadline::At(TimePoint()));
    Start("Chat", "x", &not_sent);
    client_.reset();
    EXPECT_FALSE(waits.done || not_sent.done);
  }
  gate_.Open();
}

TEST_F(StreamClientTest, ARunCountsMessages) {
  RunOptions options = Options(Kind::kBoth, 4);
  options.requests = 200;
  const FixedWorkload workload("/test.Streams/Chat", "hello");
  const auto result = RunClosedLoop(options, workload, 8, std::chrono::duration_cast<Nanos>(kMaxTestWait));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->ok, 200u);
  EXPECT_EQ(chats_, 4);
  EXPECT_THAT(result->plan.workload, HasSubstr("on 4 streams"));
}

}  // namespace
}  // namespace curtail::internal
