// SPDX-License-Identifier: Apache-2.0
//
// Header blocks that repeat, which neither end works out again: they mean what they say each time, whatever has
// changed the tables meanwhile.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <optional>

#include "curtail/wire/http/http2_frames_testing.h"
#include "curtail/wire/internal/frame.h"
#include "curtail/wire/session.h"
#include "curtail/wire/session_testing.h"

namespace curtail::wire {
namespace {

using internal::kEndHeaders;
using internal::kEndStream;
using testing::ElementsAre;
using testing::SizeIs;
using namespace std::string_literals;

std::vector<std::pair<std::string, std::string>> Entries(const Metadata& metadata) {
  std::vector<std::pair<std::string, std::string>> entries;
  for (const auto& [key, value] : metadata) entries.emplace_back(key, value);
  return entries;
}

// Calls of a few methods with and without fields of their own, and the answers to them, both drawn at random.
class Calls {
 public:
  explicit Calls(uint32_t seed) : pair_(SessionOptions(), seed), rng_(seed) {
    pair_.server_events.on_request_end = [this](StreamId id) { Answer(id); };
  }

  void Start() {
    RequestHead head = Head(paths_[rng_() % 2 * (rng_() % paths_.size())]);
    if (rng_() % 4 != 0) head.timeout = timeouts_[rng_() % 2 * (rng_() % timeouts_.size())];
    if (rng_() % 6 == 0) head.metadata.Add("key", std::to_string(rng_() % 3));
    if (rng_() % 9 == 0) head.authority = "other:1";
    const StreamId id = StartUnary(pair_, std::string(rng_() % 100, 'm'), head);
    sent_[id] = head;
  }
  void Deliver() {
    const absl::Status pumped = pair_.Pump(rng_() % 3 == 0 ? 1 + rng_() % 40 : 1 << 20);
    ASSERT_TRUE(pumped.ok()) << pumped;
    for (const auto& [id, head] : sent_) Check(id, head);
    sent_.clear();
  }

 private:
  struct Reply {
    Metadata initial, trailing;
    absl::Status status;
    std::optional<std::string> message;
  };

  void Answer(StreamId id) {
    Reply& reply = replies_[id];
    if (rng_() % 6 == 0) reply.initial.Add("head", "one");
    if (rng_() % 6 == 0) reply.trailing.Add("tail", "one");
    if (rng_() % 4 == 0)
      reply.status = rng_() % 2 == 0 ? absl::NotFoundError("nothing") : absl::AbortedError("");
    if (reply.status.ok() || rng_() % 2 == 0) reply.message.emplace(rng_() % 100, 'r');
    if (!reply.initial.empty()) pair_.server.SendHead(id, reply.initial);
    if (reply.message) pair_.server.SendMessage(id, std::string(*reply.message));
    pair_.server.EndCall(id, reply.status, reply.trailing);
  }

  void Check(StreamId id, const RequestHead& sent) {
    const CallLog& served = pair_.server_events.calls[id];
    EXPECT_EQ(served.request.path, sent.path);
    EXPECT_EQ(Entries(served.request.metadata), Entries(sent.metadata));
    ASSERT_EQ(served.request.timeout.has_value(), sent.timeout.has_value());
    if (sent.timeout) {
      EXPECT_GE(*served.request.timeout, *sent.timeout);
      EXPECT_LE(*served.request.timeout - *sent.timeout, *sent.timeout / 1000);
    }
    const Reply& reply = replies_[id];
    const CallLog& call = pair_.client_events.calls[id];
    EXPECT_EQ(call.ends, 1);
    EXPECT_EQ(call.status, reply.status);
    EXPECT_EQ(call.messages, reply.message ? std::vector{*reply.message} : std::vector<std::string>());
    if (reply.message || !reply.initial.empty()) {
      ASSERT_TRUE(call.head);
      EXPECT_EQ(Entries(*call.head), Entries(reply.initial));
    }
    EXPECT_EQ(Entries(call.trailing), Entries(reply.trailing));
  }

  Pair pair_;
  std::mt19937 rng_;
  std::map<StreamId, RequestHead> sent_;
  std::map<StreamId, Reply> replies_;
  const std::array<std::string, 6> paths_ = {"/a.B/C", "/a.B/D", "/a.B/E",
                                             "/a.B/F", "/a.B/G", "/long/" + std::string(400, 'p')};
  const std::array<Nanos, 7> timeouts_ = {
      std::chrono::seconds(10),     std::chrono::milliseconds(9999), std::chrono::seconds(9), Nanos(1),
      std::chrono::microseconds(5), std::chrono::hours(1000),        Nanos(123'456'789)};
};

TEST(SessionRepeats, CallsArriveAsTheyWereMeant) {
  const uint32_t seed = TestSeed();
  for (uint32_t connection = 0; connection < 20; ++connection) {
    Calls calls(seed + connection);
    for (int i = 0; i < 100; ++i) {
      calls.Start();
      if (i % 3 == 2) calls.Deliver();
      if (testing::Test::HasFailure()) return;
    }
  }
}

TEST(SessionRepeats, TimeoutsRoundUpByLessThanAThousandth) {
  Pair pair;
  pair.ServeEcho();
  for (int64_t nanos = 1; nanos < int64_t{1} << 62; nanos += nanos / 7 + 1) {
    for (int again = 0; again < 2; ++again) {
      RequestHead head = Head();
      head.timeout = Nanos(nanos - again);
      const StreamId id = StartUnary(pair, "m", head);
      ASSERT_TRUE(pair.Pump().ok());
      const std::optional<Nanos> got = pair.server_events.calls[id].request.timeout;
      ASSERT_TRUE(got) << nanos;
      EXPECT_GE(*got, *head.timeout);
      EXPECT_LE((*got - *head.timeout).count(), std::max<int64_t>(nanos / 1000, 1)) << nanos;
    }
  }
}

// A server's session, to which a client says byte by byte what it wants.
class RawServer {
 public:
  RawServer() { EXPECT_TRUE(session.Receive(std::string(internal::kPreface) + Frame(4, 0, 0, "")).ok()); }

  // A call of one message, which comes at once.
  const CallLog& Call(std::string_view block, std::string_view data, uint8_t flags = kEndStream) {
    const uint32_t id = next;
    next += 2;
    const absl::Status status = session.Receive(Frame(1, kEndHeaders, id, block) + Frame(0, flags, id, data));
    EXPECT_TRUE(status.ok()) << status;
    return events.calls[static_cast<StreamId>(id)];
  }
  // A request without a message.
  absl::Status Request(std::string_view block) {
    absl::Status status = session.Receive(Frame(1, kEndHeaders | kEndStream, next, block));
    next += 2;
    return status;
  }
  std::string LastPath() { return std::prev(events.calls.end())->second.request.path; }

  Recorder events;
  Session session{Role::kServer, {}, &events};
  uint32_t next = 1;
};

const std::string kPost = "\x83\x86";  // :method, :scheme
const std::string kNewest = "\xbe";    // the newest entry of the table
const std::string kGrpc = Block({{"content-type", "application/grpc"}});

TEST(SessionRepeats, ABlockMeansSomethingElseAfterAnInsertion) {
  RawServer server;
  for (int method = 0; method < 9; ++method) {
    const std::string path = "/a.B/" + std::to_string(method);
    ASSERT_TRUE(server.Request(kPost + Literal('\x40', ":path", path) + kGrpc).ok());
    for (int again = 0; again < 3; ++again) {
      ASSERT_TRUE(server.Request(kPost + kNewest + kGrpc).ok());
      EXPECT_EQ(server.LastPath(), path);
    }
  }
  EXPECT_THAT(server.events.calls, SizeIs(36));
}

// Each time such a block comes it inserts once more.
TEST(SessionRepeats, ABlockThatInsertsIsNeverSkipped) {
  RawServer server;
  const std::string inserting = kPost + kNewest + Literal('\x40', "content-type", "application/grpc");
  ASSERT_TRUE(server.Request(kPost + Literal('\x40', ":path", "/a.B/C") + kGrpc).ok());
  ASSERT_TRUE(server.Request(kPost + kNewest + kGrpc).ok());
  ASSERT_TRUE(server.Request(inserting).ok());
  EXPECT_EQ(server.LastPath(), "/a.B/C");
  // Now the newest entry is a content-type: a request without a path.
  const size_t calls = server.events.calls.size();
  ASSERT_TRUE(server.Request(inserting).ok());
  EXPECT_THAT(server.events.calls, SizeIs(calls));
}

TEST(SessionRepeats, ABlockMeansNothingOnceTheTableIsEmpty) {
  RawServer server;
  ASSERT_TRUE(server.Request(kPost + Literal('\x40', ":path", "/a.B/C") + kGrpc).ok());
  for (int again = 0; again < 2; ++again) ASSERT_TRUE(server.Request(kPost + kNewest + kGrpc).ok());
  ASSERT_TRUE(server.Request("\x20"s + kPost + Literal('\0', ":path", "/a.B/D") + kGrpc).ok());
  EXPECT_EQ(server.LastPath(), "/a.B/D");
  EXPECT_FALSE(server.Request(kPost + kNewest + kGrpc).ok());
}

TEST(SessionRepeats, ASizeUpdateBehindAKnownFrontIsAnError) {
  RawServer server;
  for (int again = 0; again < 2; ++again) {
    ASSERT_TRUE(server.Request(kPost + Literal('\0', ":path", "/a.B/C") + kGrpc).ok());
  }
  EXPECT_FALSE(server.Request(kPost + "\x20" + Literal('\0', ":path", "/a.B/C") + kGrpc).ok());
}

// Fields behind a front that is known count as ever: a second path is malformed, one field more is metadata.
TEST(SessionRepeats, FieldsBehindAKnownFrontCount) {
  RawServer server;
  ASSERT_TRUE(server.Request(kPost + Literal('\x40', ":path", "/a.B/C") + kGrpc).ok());
  ASSERT_TRUE(server.Request(kPost + kNewest + kGrpc).ok());
  ASSERT_TRUE(server.Request(kPost + kNewest + kGrpc + Literal('\0', "key", "value")).ok());
  const Metadata& metadata = std::prev(server.events.calls.end())->second.request.metadata;
  EXPECT_EQ(metadata.Find("key"), "value");
  ASSERT_TRUE(server.Request(kPost + kNewest + kGrpc).ok());
  EXPECT_TRUE(std::prev(server.events.calls.end())->second.request.metadata.empty());
  const size_t calls = server.events.calls.size();
  ASSERT_TRUE(server.Request(kPost + kNewest + Literal('\0', ":path", "/a.B/D") + kGrpc).ok());
  EXPECT_THAT(server.events.calls, SizeIs(calls));
}

// Frames that are like those of a whole request but for one thing take effect as ever.
TEST(SessionRepeats, RequestsThatAreNotWholeAreNoRequests) {
  RawServer server;
  const std::string head = kPost + kNewest + kGrpc;
  server.Call(kPost + Literal('\x40', ":path", "/a.B/C") + kGrpc, Framed("m"));
  for (int again = 0; again < 3; ++again) {
    const CallLog& call = server.Call(head, Framed("m"));
    EXPECT_THAT(call.messages, ElementsAre("m"));
    EXPECT_TRUE(call.request_ended);
    EXPECT_EQ(call.request.path, "/a.B/C");
  }
  EXPECT_THAT(server.Call(head, Framed("a") + Framed("b")).messages, ElementsAre("a", "b"));
  EXPECT_TRUE(server.Call(head, "").request_ended);
  EXPECT_EQ(server.Call(head, Prefix(9) + "short").status.code(), absl::StatusCode::kInternal);
  EXPECT_EQ(server.Call(head, Framed("m", 1)).status.code(), absl::StatusCode::kInternal);
  const CallLog& open = server.Call(head, Framed("m"), 0);
  EXPECT_THAT(open.messages, ElementsAre("m"));
  EXPECT_FALSE(open.request_ended);
  // One after the server's goodbye is not looked at, and one on a stream that was passed over ends the connection.
  server.next += 2;
  EXPECT_TRUE(server.Call(head, Framed("m")).request_ended);
  server.session.SendGoaway();
  EXPECT_TRUE(server.Call(head, Framed("m")).messages.empty());
}

TEST(SessionRepeats, AWholeRequestCountsForTheLimitOfCalls) {
  SessionOptions options;
  options.max_concurrent_streams = 2;
  Recorder events;
  Session server(Role::kServer, options, &events);
  ASSERT_TRUE(server.Receive(std::string(internal::kPreface) + Frame(4, 0, 0, "")).ok());
  const std::string first = kPost + Literal('\x40', ":path", "/a.B/C") + kGrpc;
  const std::string later = kPost + kNewest + kGrpc;
  for (uint32_t id = 1; id < 20; id += 2) {
    const std::string& head = id == 1 ? first : later;
    ASSERT_TRUE(server.Receive(Frame(1, kEndHeaders, id, head) + Frame(0, kEndStream, id, Framed("m"))).ok());
  }
  EXPECT_THAT(events.calls, SizeIs(2));
}

TEST(SessionRepeats, AnEventMayEndTheCallWithinAWholeRequest) {
  for (const bool at_head : {true, false}) {
    RawServer server;
    const std::string head = kPost + kNewest + kGrpc;
    server.Call(kPost + Literal('\x40', ":path", "/a.B/C") + kGrpc, Framed("m"));
    for (int again = 0; again < 2; ++again) server.Call(head, Framed("m"));
    const auto fail = [&](StreamId id) { server.session.FailCall(id, absl::AbortedError("no")); };
    if (at_head) {
      server.events.on_request = fail;
    } else {
      server.events.on_message = [&](StreamId id, const std::string&) { fail(id); };
    }
    const CallLog& call = server.Call(head, Framed("m"));
    EXPECT_FALSE(call.request_ended);
    EXPECT_THAT(call.messages, SizeIs(at_head ? 0 : 1));
    EXPECT_EQ(server.events.late_events, 0);
    server.events.on_request = nullptr;
    server.events.on_message = nullptr;
    EXPECT_TRUE(server.Call(head, Framed("m")).request_ended);
  }
}

// Behind :status 200 the entry before the newest.
const std::string kOldHead = "\x88\xbf";

// A client's session with calls that a server answers byte by byte.
template <class Owner>
class RawClientOf {
 public:
  StreamId Start() {
    const auto id = session.StartUnaryCall(Head(), "m", nullptr);
    EXPECT_TRUE(id.ok()) << id.status();
    std::string out;
    while (session.Pull(&out)) continue;
    return id.value_or(0);
  }
  static std::string Reply(StreamId id, std::string_view head, std::string_view data,
                           std::string_view trailers) {
    const auto stream = static_cast<uint32_t>(id);
    return Frame(1, kEndHeaders, stream, head) + Frame(0, 0, stream, data) +
           Frame(1, kEndHeaders | kEndStream, stream, trailers);
  }
  // A call that gets this reply.
  const CallLog& Call(std::string_view head, std::string_view data, std::string_view trailers) {
    const StreamId id = Start();
    const absl::Status status = session.Receive(Reply(id, head, data, trailers));
    EXPECT_TRUE(status.ok()) << status;
    return events.calls[id];
  }
  void Greet() { ASSERT_TRUE(session.Receive(Frame(4, 0, 0, "")).ok()); }
  // From now on kOldHead and kNewest are what heads and trailers of good replies were.
  void Warm() {
    Greet();
    Call("\x88" + Literal('\x40', "content-type", "application/grpc"), Framed("r"),
         Literal('\x40', "grpc-status", "0"));
    Call(kOldHead, Framed("r"), kNewest);
  }

  Owner events;
  Session session{Role::kClient, {}, &events};
};
using RawClient = RawClientOf<Recorder>;

const std::string kHead = "\x88" + kGrpc;  // :status 200

TEST(SessionRepeats, TrailersMeanSomethingElseAfterAnInsertion) {
  RawClient client;
  client.Greet();
  for (const int code : {0, 5, 0, 7}) {
    client.Call(kHead, Framed("r"), Literal('\x40', "grpc-status", std::to_string(code)));
    for (int again = 0; again < 3; ++again) {
      const CallLog& call = client.Call(kHead, Framed("r"), kNewest);
      EXPECT_EQ(static_cast<int>(call.status.code()), code);
      EXPECT_THAT(call.messages, ElementsAre("r"));
      EXPECT_EQ(call.ends, 1);
    }
  }
}

// Frames that are like those of a whole reply but for one thing take effect as ever.
TEST(SessionRepeats, RepliesThatAreNotWholeAreNoReplies) {
  RawClient client;
  client.Warm();
  EXPECT_TRUE(client.Call(kOldHead, Framed("r"), kNewest).status.ok());
  EXPECT_THAT(client.Call(kOldHead, Framed("a") + Framed("b"), kNewest).messages, ElementsAre("a", "b"));
  EXPECT_THAT(client.Call(kOldHead, "", kNewest).messages, SizeIs(0));
  EXPECT_EQ(client.Call(kOldHead, Prefix(9) + "short", kNewest).status.code(), absl::StatusCode::kInternal);
  EXPECT_EQ(client.Call(kOldHead, Framed("r", 1), kNewest).status.code(), absl::StatusCode::kInternal);
  EXPECT_EQ(client.Call(kOldHead, Framed("r", 2), kNewest).status.code(), absl::StatusCode::kInternal);
  // The frames of two calls in between each other.
  const StreamId one = client.Start(), other = client.Start();
  const std::string first = RawClient::Reply(one, kOldHead, Framed("1"), kNewest);
  const std::string second = RawClient::Reply(other, kOldHead, Framed("2"), kNewest);
  const size_t head = 9 + kOldHead.size();
  ASSERT_TRUE(client.session.Receive(first.substr(0, head) + second + first.substr(head)).ok());
  EXPECT_THAT(client.events.calls[one].messages, ElementsAre("1"));
  EXPECT_THAT(client.events.calls[other].messages, ElementsAre("2"));
  EXPECT_EQ(client.events.calls[one].ends + client.events.calls[other].ends, 2);
  EXPECT_EQ(client.session.open_streams(), 0u);
  EXPECT_EQ(client.events.late_events, 0);
}

TEST(SessionRepeats, ACallIsOverWhenItsOwnerHearsOfAWholeReply) {
  for (const bool at_head : {true, false}) {
    RawClient client;
    client.Warm();
    if (at_head) {
      client.events.on_head = [&](StreamId id) { client.session.Cancel(id); };
    } else {
      client.events.on_message = [&](StreamId id, const std::string&) { client.session.Cancel(id); };
    }
    const CallLog& call = client.Call(kOldHead, Framed("r"), kNewest);
    EXPECT_EQ(call.ends, 1);
    EXPECT_TRUE(call.status.ok());
    EXPECT_THAT(call.messages, ElementsAre("r"));
    client.events.on_head = nullptr;
    client.events.on_message = nullptr;
    EXPECT_TRUE(client.Call(kOldHead, Framed("r"), kNewest).status.ok());
    EXPECT_EQ(client.events.late_events, 0);
  }
}

// An owner that takes whole replies.
class TakesReplies final : public Recorder {
 public:
  void OnReply(StreamId, void*, std::string_view message) override { replies.emplace_back(message); }
  std::vector<std::string> replies;
};

TEST(SessionRepeats, AWholeReplyIsOneEvent) {
  RawClientOf<TakesReplies> client;
  client.Warm();
  for (const std::string_view text : {"3", "", "5"}) {
    const CallLog& call = client.Call(kOldHead, Framed(std::string(text)), kNewest);
    EXPECT_FALSE(call.head);
    EXPECT_EQ(call.ends, 0);
  }
  EXPECT_THAT(client.events.replies, ElementsAre("3", "", "5"));
  EXPECT_EQ(client.session.open_streams(), 0u);
  // A stream of messages has events for each part.
  const auto stream = client.session.StartCall(Head(), nullptr);
  ASSERT_TRUE(stream.ok());
  client.session.EndRequest(*stream);
  ASSERT_TRUE(client.session.Receive(client.Reply(*stream, kOldHead, Framed("6"), kNewest)).ok());
  EXPECT_THAT(client.events.calls[*stream].messages, ElementsAre("6"));
  EXPECT_EQ(client.events.calls[*stream].ends, 1);
}

TEST(SessionRepeats, AWholeReplyMayComeWhileItsRequestIsWritten) {
  RawClient client;
  client.Warm();
  const std::string request = Pattern(30000);
  const auto id = client.session.StartUnaryCall(Head(), std::string(request), nullptr);
  ASSERT_TRUE(id.ok());
  Output output;
  client.session.Gather(&output);
  ASSERT_FALSE(output.pieces.empty());
  ASSERT_TRUE(client.session.Receive(RawClient::Reply(*id, kOldHead, Framed("r"), kNewest)).ok());
  EXPECT_TRUE(client.events.calls[*id].status.ok());
  size_t lent = 0;
  for (const Output::Piece& piece : output.pieces) {
    EXPECT_EQ(piece.bytes, request.substr(lent, piece.bytes.size()));
    lent += piece.bytes.size();
  }
  EXPECT_GT(lent, 0u);
  EXPECT_EQ(client.session.queued_bytes(), 0u);
  client.session.Written();
}

// The window of the connection is given back although each reply came in one step.
TEST(SessionRepeats, WholeRepliesCountAgainstTheWindow) {
  SessionOptions options;
  options.connection_window_bytes = 65535;
  Pair pair(options);
  pair.ServeEcho();
  for (int i = 0; i < 200; ++i) {
    const StreamId id = StartUnary(pair, Pattern(1000));
    ASSERT_TRUE(pair.Pump().ok());
    ASSERT_EQ(pair.client_events.calls[id].ends, 1) << i;
    EXPECT_TRUE(pair.client_events.calls[id].status.ok());
  }
}

}  // namespace
}  // namespace curtail::wire
