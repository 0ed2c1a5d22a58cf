// SPDX-License-Identifier: Apache-2.0
//
// The gateway in front of a real server, spoken to through sockets, byte by byte.
#include "curtail/gateway/gateway.h"

#include <atomic>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>

#include "curtail/base/boundary.h"
#include "curtail/base/internal/control_groups_testing.h"
#include "curtail/base/strings.h"
#include "curtail/base/testing.h"
#include "curtail/gateway/testing/gateway_fixture.h"
#include "curtail/load/drive/runner.h"
#include "curtail/load/message/http_workload.h"
#include "curtail/rpc/interceptor.h"
#include "curtail/wire/metadata.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace curtail::gateway {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;
using std::string_literals::operator""s;

TEST_F(GatewayTest, PathsQueriesAndBodiesBecomeRequests) {
  EXPECT_THAT(Ask("GET /v1/shelves/1/books/2"),
              AllOf(StartsWith("HTTP/1.1 200 OK\r\n"), HasSubstr("content-type: application/json\r\n"),
                    HasSubstr("grpc-metadata-x-shelf: one\r\n"),
                    HasSubstr(R"({"name":"shelves/1/books/2","title":"as of 0"})")));
  EXPECT_THAT(Ask("GET /v1/shelves/1/books/2?as_of=1970-01-01T00:01:00Z"), HasSubstr("as of 60"));
  EXPECT_THAT(
      Ask("GET "
          "/v1/shelves/7/books?pageSize=3&tag=a+b&tag=%C3%A9&author.name=x&kind=NOVEL&mark=_-8&lent=true"),
      HasSubstr(R"(shelf: 7 page_size: 3 tag: \"a b\" tag: \"\\303\\251\" author { name: \"x\" } )"
                R"(kind: NOVEL mark: \"\\377\\357\" lent: true)"));
  EXPECT_THAT(Ask("PATCH /v1/shelves/1/books/2?force=true", R"({"title":"new","name":"body"})"),
              HasSubstr(R"({"name":"shelves/1/books/2","title":"forced"})"));
  EXPECT_THAT(Ask("POST /v1/shelves/9/books/9:checkout", R"({"author":{"name":"A","born":1900}})"),
              HasSubstr(R"({"name":"shelves/9/books/9","author":{"name":"A","born":1900}})"));
  EXPECT_THAT(Ask("GET /v1/title/shelves/1/books/2"), HasSubstr("\r\n\r\n\"as of 0\""));
}

TEST_F(GatewayTest, EveryMethodHasAPathOfItsName) {
  EXPECT_THAT(Ask("POST /library.Library/GetBook", R"({"name":"n"})"), HasSubstr(R"("name":"n")"));
  EXPECT_THAT(Ask("POST /library.Library/GetBook"), HasSubstr("200 OK"));
}

TEST_F(GatewayTest, ErrorsAreJsonWithTheirHttpStatus) {
  EXPECT_THAT(Ask("GET /v1/shelves/1/books/404"),
              AllOf(StartsWith("HTTP/1.1 404 Not Found\r\n"),
                    HasSubstr(R"({"code":5,"message":"no \"such\" book","details":[]})")));
  EXPECT_THAT(Ask("GET /nowhere"), StartsWith("HTTP/1.1 404"));
  EXPECT_THAT(Ask("PUT /v1/shelves/1/books/2"),
              AllOf(StartsWith("HTTP/1.1 405"), HasSubstr("allow: GET, PATCH\r\n")));
  for (const char* query : {"nothing=1", "shelf=x", "kind=NO", "mark=!", "author=x", "author.name.first=x",
                            "pageSize=99999999999", "tag=%ff", "author.nothing=x"}) {
    EXPECT_THAT(Ask(Join("GET /v1/shelves/1/books?", query)), StartsWith("HTTP/1.1 400")) << query;
  }
  EXPECT_THAT(Ask("POST /library.Library/GetBook", "{"), StartsWith("HTTP/1.1 400"));
  EXPECT_THAT(Ask("POST /library.Library/GetBook", R"({"nothing":1})"),
              AllOf(StartsWith("HTTP/1.1 400"), HasSubstr("nothing")));
  EXPECT_THAT(Ask("GET /v1/shelves/1/books", "{}"), StartsWith("HTTP/1.1 400"))
      << "a body where none belongs";
  EXPECT_THAT(Ask("PATCH /v1/shelves/1/books/2?book.title=x", "{}"), StartsWith("HTTP/1.1 400"));
}

TEST_F(GatewayTest, ABodyOfAFieldCannotReachOthers) {
  EXPECT_THAT(Ask("PATCH /v1/shelves/1/books/2", R"({"title":"t"},"force":true)"),
              StartsWith("HTTP/1.1 400"));
  EXPECT_THAT(Ask("PATCH /v1/shelves/1/books/2", R"({"title":"t"}} {"force":true)"),
              StartsWith("HTTP/1.1 400"));
}

TEST_F(GatewayTest, DeepJsonIsRefused) {
  const std::string deep = Join(std::string(100'000, '['), std::string(100'000, ']'));
  EXPECT_THAT(Ask("POST /library.Library/GetBook", deep), StartsWith("HTTP/1.1 400"));
  EXPECT_THAT(Ask("PATCH /v1/shelves/1/books/2", deep), StartsWith("HTTP/1.1 400"));
}

TEST_F(GatewayTest, FormsAreTakenOnlyIfAsked) {
  const std::string type = "content-type: application/x-www-form-urlencoded\r\n";
  const std::string form = "name=a+b%26c&as_of=1970-01-01T00:01:00Z";
  EXPECT_THAT(Ask("POST /library.Library/GetBook", form, type), StartsWith("HTTP/1.1 400"));
  gateway_.reset();
  options_.accept_forms = true;
  EXPECT_THAT(Ask("POST /library.Library/GetBook", form, type),
              AllOf(StartsWith("HTTP/1.1 200"), HasSubstr(R"({"name":"a b&c","title":"as of 60"})")));
  EXPECT_THAT(Ask("POST /v1/shelves/9/books/9:checkout", "title=raw [\"x\"]", type),
              HasSubstr(R"({"name":"shelves/9/books/9","title":"raw [\"x\"]"})"));
  EXPECT_THAT(Ask("POST /library.Library/GetBook", "nothing=1", type), StartsWith("HTTP/1.1 400"));
  EXPECT_THAT(Ask("PATCH /v1/shelves/1/books/2", "title=x", type), StartsWith("HTTP/1.1 400")) << "a part";
  EXPECT_THAT(Ask("POST /library.Library/GetBook", "{}"), StartsWith("HTTP/1.1 200")) << "JSON still";
  EXPECT_THAT(Ask("POST /library.Library/GetBook", form, type + "origin: https://evil.example\r\n"),
              StartsWith("HTTP/1.1 403"));
  EXPECT_THAT(Ask("GET /v1/shelves/1/books/2", {}, type), StartsWith("HTTP/1.1 200")) << "a type and no body";
}

TEST_F(GatewayTest, HttpBodiesAreBytesOfAnyType) {
  const std::string image = "\x89PNG\0\r\n{"s;
  EXPECT_THAT(
      Ask("PUT /v1/shelves/1/books/2/cover", image, "content-type: image/png\r\n"),
      AllOf(StartsWith("HTTP/1.1 200"), HasSubstr("content-type: image/png; book=shelves/1/books/2\r\n"),
            HasSubstr("\r\n\r\n" + image)));
  EXPECT_THAT(Ask("PUT /v1/shelves/1/books/2/cover", "{", "content-type: application/json\r\n"),
              HasSubstr("\r\n\r\n{"));
  EXPECT_THAT(Ask("GET /v1/shelves/1/books/2/cover"),
              HasSubstr("content-type: application/octet-stream\r\n"));
  // A type that would end its header is none.
  EXPECT_THAT(Ask("POST /v1/turn", "abc", "content-type: text/plain\r\n"),
              AllOf(HasSubstr("content-type: application/octet-stream\r\n"), HasSubstr("\r\n\r\ncba"),
                    Not(HasSubstr("stolen"))));
  EXPECT_THAT(Ask("POST /v1/turn", "", "content-type: text/plain\r\n"),
              AllOf(StartsWith("HTTP/1.1 400"), HasSubstr("content-type: application/json\r\n"),
                    HasSubstr("nothing to turn")));
  // By its name a method speaks JSON.
  EXPECT_THAT(Ask("POST /library.Library/SetCover", R"({"image":{"contentType":"a/b","data":"YWJj"}})"),
              HasSubstr(R"({"contentType":"a/b; book=","data":"YWJj"})"));
}

TEST_F(GatewayTest, OnlyNamedHeadersAreForwarded) {
  EXPECT_THAT(Ask("GET /v1/shelves/1/books/2", {}, "authorization: secret\r\n"), Not(HasSubstr("cover")));
  gateway_.reset();
  options_.forward_headers = {"Authorization"};
  EXPECT_THAT(Ask("GET /v1/shelves/1/books/2", {}, "authorization: secret\r\n"),
              HasSubstr(Join("\"cover\":\"", wire::Base64Encode("secret"))));
}

TEST_F(GatewayTest, OtherOriginsNeedLeave) {
  const std::string get = "GET /v1/shelves/1/books/2";
  EXPECT_THAT(Ask(get, {}, "origin: https://evil.example\r\n"), StartsWith("HTTP/1.1 403"));
  EXPECT_THAT(Ask(get, {}, "origin: http://x\r\n"), StartsWith("HTTP/1.1 200")) << "its own";
  EXPECT_THAT(Ask("POST /library.Library/GetBook", "{}", "content-type: text/plain\r\n"),
              StartsWith("HTTP/1.1 400"))
      << "a type that pages may send without asking";
  gateway_.reset();
  options_.allowed_origins = {"https://app.example"};
  EXPECT_THAT(
      Ask(get, {}, "origin: https://app.example\r\n"),
      AllOf(StartsWith("HTTP/1.1 200"), HasSubstr("access-control-allow-origin: https://app.example\r\n")));
  EXPECT_THAT(Ask(get, {}, "origin: https://evil.example\r\n"), StartsWith("HTTP/1.1 403"));
  EXPECT_THAT(
      Ask("OPTIONS /v1/x", {}, "origin: https://app.example\r\naccess-control-request-method: PUT\r\n"),
      AllOf(StartsWith("HTTP/1.1 204"), HasSubstr("access-control-allow-methods: GET, POST")));
}

TEST_F(GatewayTest, AnswersGrpcWeb) {
  library::GetBookRequest request;
  request.set_name("n");
  const std::string message = request.SerializeAsString();
  const std::string frame = "\0\0\0\0"s + static_cast<char>(message.size()) + message;
  const std::string type = "content-type: application/grpc-web+proto\r\n";
  EXPECT_THAT(
      Ask("POST /library.Library/GetBook", frame, type),
      AllOf(HasSubstr("200 OK"), HasSubstr("grpc-status:0\r\nx-shelf:one\r\n"), HasSubstr("as of 0")));
  EXPECT_THAT(Ask("POST /library.Library/Nothing", frame, type),
              AllOf(HasSubstr("200 OK"), HasSubstr("grpc-status:5\r\n")));
  const std::string text = "content-type: application/grpc-web-text\r\n";
  EXPECT_THAT(Ask("POST /library.Library/GetBook", wire::Base64Encode(frame), text),
              HasSubstr("content-type: application/grpc-web-text+proto\r\n"));
}

TEST_F(GatewayTest, OneConnectionCarriesManyRequests) {
  Peer peer = Connect();
  const std::string get = "GET /v1/shelves/1/books/2 HTTP/1.1\r\nhost: x\r\n\r\n";
  for (const char c : get) peer.Write(std::string(1, c));
  EXPECT_THAT(peer.Read(), HasSubstr("books/2"));
  // Three at once, of which the second does not exist: answers come in their order.
  peer.Write(Join(get, "GET /nowhere HTTP/1.1\r\nhost: x\r\n\r\n", get));
  EXPECT_THAT(peer.Read(), StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(peer.Read(), StartsWith("HTTP/1.1 404"));
  EXPECT_THAT(peer.Read(), StartsWith("HTTP/1.1 200"));
  peer.Write(
      "POST /library.Library/GetBook HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
      "transfer-encoding: chunked\r\n\r\n3\r\n{\"n\r\n8\r\name\":\"c\"\r\n1\r\n}\r\n0\r\n\r\n");
  EXPECT_THAT(peer.Read(), HasSubstr(R"("name":"c")"));
  peer.Write("GET /nowhere HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
  EXPECT_THAT(peer.Read(), HasSubstr("connection: close\r\n"));
  EXPECT_TRUE(peer.Closed());
}

TEST_F(GatewayTest, TellsAClientToSendItsBody) {
  Peer peer = Connect();
  peer.Write(
      "POST /library.Library/GetBook HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
      "expect: 100-continue\r\ncontent-length: 2\r\n\r\n");
  EXPECT_EQ(peer.ReadUntil("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  peer.Write("{}");
  EXPECT_THAT(peer.Read(), StartsWith("HTTP/1.1 200"));
}

TEST_F(GatewayTest, MalformedAndLongRequestsAreAnsweredOnce) {
  const auto first_line = [&](const std::string& bytes) {
    Peer peer = Connect();
    peer.Write(bytes);
    const std::string reply = peer.Read();
    EXPECT_TRUE(peer.Closed()) << bytes.substr(0, 50);
    return reply.substr(0, 12);
  };
  options_.http.max_body_bytes = 1000;
  EXPECT_EQ(first_line("\r\n\r\nhello\r\n\r\n"), "HTTP/1.1 400");
  EXPECT_EQ(first_line("GET / HTTP/1.1\r\ncontent-length: x\r\n\r\n"), "HTTP/1.1 400");
  EXPECT_EQ(first_line("GET / HTTP/1.1\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n"),
            "HTTP/1.1 400");
  EXPECT_EQ(first_line(Join("GET / HTTP/1.1\r\nx: ", std::string(20'000, 'x'))), "HTTP/1.1 431");
  EXPECT_EQ(first_line("POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 1001\r\n\r\n"), "HTTP/1.1 413");
  EXPECT_EQ(gateway().stats().refused, 2u) << "those for a limit";
}

TEST_F(GatewayTest, SlowAndIdleConnectionsEnd) {
  options_.request_timeout = std::chrono::milliseconds(200);
  options_.idle_timeout = std::chrono::milliseconds(400);
  Peer silent = Connect();
  Peer slow = Connect();
  slow.Write("GET / HT");
  EXPECT_TRUE(slow.Closed());
  EXPECT_TRUE(silent.Closed());
  EXPECT_EQ(gateway().stats().timed_out, 2u);
}

TEST_F(GatewayTest, LimitsOnConnectionsAndRequests) {
  options_.max_connections = 1;
  options_.max_requests = 0;
  Peer one = Connect();
  one.Write("GET /v1/shelves/1/books/2 HTTP/1.1\r\nhost: x\r\n\r\n");
  EXPECT_THAT(one.Read(), StartsWith("HTTP/1.1 503"));
  Peer two = Connect();
  EXPECT_TRUE(two.Closed());
  EXPECT_EQ(gateway().stats().refused, 2u);
}

// Property: requests that the target keeps stop no others but large ones that find no room beside them.
TEST_F(GatewayTest, RequestsInFlightHoldTheirBytes) {
  options_.max_held_bytes = 60'000;
  const auto request = [](std::string_view title, size_t bytes) {
    return Post("/library.Library/Checkout",
                Join(R"({"title":")", title, R"(","name":")", std::string(bytes, 'n'), "\"}"));
  };
  Peer one = Connect(), two = Connect(), three = Connect(), small = Connect();
  one.Write(request("slow", 20'000));
  two.Write(request("slow", 8'000));
  ASSERT_TRUE(Await([&] { return gateway().stats().requests == 2; }));
  three.Write(request("fast", 8'000));
  EXPECT_THAT(three.Read(), StartsWith("HTTP/1.1 503"));
  EXPECT_EQ(gateway().stats().refused, 1u);
  small.Write(request("fast", 3'000));
  ASSERT_TRUE(Await([&] { return gateway().stats().requests == 4; }));
  library_->Release();  // the server may have no thread for more calls
  EXPECT_THAT(small.Read(), StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(one.Read(), StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(two.Read(), StartsWith("HTTP/1.1 200"));
  three.Write(request("fast", 8'000));
  EXPECT_THAT(three.Read(), StartsWith("HTTP/1.1 200"));
}

// Property: an answer that finds no room beside others is refused, and a small one leaves.
TEST_F(GatewayTest, AnswersHoldTheirBytes) {
  options_.max_held_bytes = 100'000;
  options_.files = {{"large.txt", std::string(60'000, 'l')}, {"half.txt", std::string(30'000, 'h')}};
  EXPECT_THAT(Ask("GET /large.txt"), StartsWith("HTTP/1.1 200")) << "alone";
  Peer peer = Connect();
  peer.Write(ParkingPreface() + GetFrame(1, "/half.txt") + GetFrame(3, "/half.txt"));
  ASSERT_TRUE(Await([&] { return gateway().stats().refused == 1; })) << "of two parked answers one is held";
  EXPECT_THAT(Ask("GET /large.txt"), AllOf(StartsWith("HTTP/1.1 429"), HasSubstr("\"code\":8")));
  EXPECT_THAT(Ask("GET /nowhere"), StartsWith("HTTP/1.1 404"));
}

// Property: a connection that goes on reading keeps no room by the answers that it does not read.
TEST_F(GatewayTest, ParkedAnswersMakeRoomForOthers) {
  options_.max_held_bytes = 100'000;
  options_.files = {{"parked.txt", std::string(22'000, 'p')},
                    {"read.txt", std::string(4'000, 'r') + "end"},
                    {"other.txt", std::string(10'000, 'o')}};
  Peer peer = Connect();
  peer.Write(ParkingPreface() + GetFrame(1, "/parked.txt") + GetFrame(3, "/parked.txt"));
  ASSERT_TRUE(Await([&] { return gateway().stats().held >= 44'000; }));
  std::atomic<bool> answered{false};
  std::thread reader([&] {
    for (uint32_t stream = 5; !answered; stream += 2) {
      const std::string window = "\0\0\x20\0"s;
      peer.Write(Join(Frame(8, 0, 0, window), GetFrame(stream, "/read.txt"), Frame(8, 0, stream, window)));
      if (peer.ReadUntil("end").empty()) return;
    }
  });
  EXPECT_THAT(Ask("GET /other.txt"), StartsWith("HTTP/1.1 200"));
  answered = true;
  reader.join();
  EXPECT_EQ(gateway().stats().timed_out, 2u) << "and the connection stays";
}

// Property: requests of HTTP/1.1 wait while their connection lags with answers.
TEST_F(GatewayTest, AConnectionHoldsFewAnswers) {
  options_.files = {{"large.txt", std::string(1'000'000, 'l')}};
  Peer slow = Connect();
  std::string many;
  for (int i = 0; i < 100; ++i) many += "GET /large.txt HTTP/1.1\r\nhost: x\r\n\r\n";
  slow.Write(many);
  ASSERT_TRUE(Await([&] { return gateway().stats().requests >= 1; }));
  for (int i = 0; i < 20; ++i) EXPECT_THAT(Ask("GET /nowhere"), StartsWith("HTTP/1.1 404"));
  EXPECT_LT(gateway().stats().held, 2'500'000u);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(slow.Read().size() / 1'000'000, 1u) << i;
}

// So much of a request that the others have to wait.
constexpr uint64_t kFull = 37'500;  // of 100,000 bytes in all
std::string Unfinished() {
  return "POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 60000\r\n\r\n" + std::string(55'000, 'x');
}

// Property: a request that never becomes whole does not stop others for its own time.
TEST_F(GatewayTest, UnfinishedRequestsMakeRoomForOthers) {
  options_.max_held_bytes = 100'000;
  options_.request_timeout = options_.idle_timeout = std::chrono::hours(1);
  Peer unfinished = Connect(), other = Connect();
  unfinished.Write(Unfinished());
  ASSERT_TRUE(Await([&] { return gateway().stats().held >= kFull; }));
  other.Write(kNowhere);
  EXPECT_THAT(other.Read(), StartsWith("HTTP/1.1 404"));
  EXPECT_THAT(Ask("GET /nowhere"), StartsWith("HTTP/1.1 404"));
  EXPECT_TRUE(unfinished.Closed());
}

// Property: neither do bytes that come behind a request in flight.
TEST_F(GatewayTest, BytesBehindARequestMakeRoomForOthers) {
  options_.max_held_bytes = 100'000;
  options_.request_timeout = options_.idle_timeout = std::chrono::hours(1);
  Peer pipelined[] = {Connect(), Connect(), Connect()};
  for (const Peer& peer : pipelined) {
    peer.Write(Post("/library.Library/Checkout", R"({"title":"slow"})") + std::string(55'000, 'x'));
  }
  ASSERT_TRUE(Await([&] { return gateway().stats().held >= kFull; }));
  EXPECT_THAT(Ask("GET /nowhere"), StartsWith("HTTP/1.1 404"));
  EXPECT_GE(gateway().stats().timed_out, 1u);
  library_->Release();
}

// Property: of HTTP/2 the request is refused, and the connection goes on.
TEST_F(GatewayTest, UnfinishedRequestsOfHttp2MakeRoomForOthers) {
  options_.max_held_bytes = 100'000;
  options_.request_timeout = options_.idle_timeout = std::chrono::hours(1);
  Peer peer = Connect();
  peer.Write(Join("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", Frame(4, 0, 0, {}),
                  Frame(1, 4, 1, "\x83\x86\x04\x08/nowhere\1\1x")));
  for (int i = 0; i < 3; ++i) peer.Write(Frame(0, 0, 1, std::string(16'000, 'x')));
  ASSERT_TRUE(Await([&] { return gateway().stats().held >= kFull; }));
  EXPECT_THAT(Ask("GET /nowhere"), StartsWith("HTTP/1.1 404"));
  EXPECT_THAT(peer.ReadUntil("the gateway holds too much"), HasSubstr("the gateway holds too much"));
  peer.Write(GetFrame(3, "/nowhere"));
  EXPECT_THAT(peer.ReadUntil("\"code\":5"), HasSubstr("\"code\":5"));
  EXPECT_EQ(gateway().stats().timed_out, 0u);
}

// Property: a connection that was not read for less than a tick is read again.
TEST_F(GatewayTest, ShortPausesStrandNoConnection) {
  options_.max_held_bytes = 100'000;
  options_.request_timeout = options_.idle_timeout = std::chrono::hours(1);
  for (int i = 0; i < 20; ++i) {
    Peer one = Connect(), other = Connect();
    one.Write(Unfinished());
    ASSERT_TRUE(Await([&] { return gateway().stats().held >= kFull; }));
    other.Write(kNowhere);
    one.Abandon();
    ASSERT_THAT(other.Read(), StartsWith("HTTP/1.1 404")) << i;
  }
}

class HeldBytesTest : public curtail::internal::ControlGroupsTest {};

TEST_F(HeldBytesTest, AreHalfOfTheMemoryAtMost) {
  EXPECT_EQ(UsualHeldBytes(root()), 256u << 20);
  Groups("0::/");
  Mounts(kV2Mount);
  Write("/sys/fs/cgroup/memory.max", Join(160 << 20));
  EXPECT_EQ(UsualHeldBytes(root()), 80u << 20);
  Write("/sys/fs/cgroup/memory.max", Join(uint64_t{4} << 30));
  EXPECT_EQ(UsualHeldBytes(root()), 256u << 20);
}

// Property: nobody works for a client that has left, or that has given its request up.
TEST_F(GatewayTest, CallsEndWithTheirClients) {
  Serve({.config = *Config::Parse("SDB1-4")});  // a handler that spins does not stop the thread that reads
  const std::string slow = Post("/library.Library/Checkout", R"({"title":"slow"})");
  const auto ended = [&](int calls) {
    return Await([&] { return gateway().stats().cancelled == static_cast<uint64_t>(calls); }) &&
           Await([&] { return library_->cancelled() == calls; });
  };
  const auto begun = [&](int calls) { return Await([&] { return library_->slow() == calls; }); };
  Peer resets = Connect();
  resets.Write(slow);
  ASSERT_TRUE(begun(1));
  EXPECT_EQ(gateway().stats().cancelled, 0u);
  resets.Abandon();
  EXPECT_TRUE(ended(1));
  {
    Peer leaves = Connect();
    leaves.Write(slow);
    ASSERT_TRUE(begun(2));
  }
  EXPECT_TRUE(ended(2));
  Peer goes_on = Connect();
  goes_on.Write(Join("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", Frame(4, 0, 0, {}),
                     Frame(1, 4, 1,
                           "\x83\x86\x04\x19/library.Library/Checkout\1\1x"
                           "\x0f\x10\x10"
                           "application/json"),
                     Frame(0, 1, 1, R"({"title":"slow"})")));
  ASSERT_TRUE(begun(3));
  goes_on.Write(Frame(3, 0, 1, "\0\0\0\x8"s));
  EXPECT_TRUE(ended(3));
  goes_on.Write(GetFrame(3, "/nowhere"));
  EXPECT_THAT(goes_on.ReadUntil("\"code\":5"), HasSubstr("\"code\":5"));
}

// A library of ours, or of others, that throws.
class Thrower final : public ClientInterceptor {
 public:
  absl::Status Before(const OutgoingCall& call, Metadata&) override {
    if (call.path.ends_with("Checkout")) throw std::length_error("from a library");
    return absl::OkStatus();
  }
};

TEST_F(GatewayTest, AnExceptionEndsItsRequestAlone) {
  Thrower thrower;
  options_.channel.interceptors = {&thrower};
  const uint64_t before = ContainedExceptions();
  Peer other = Connect();
  EXPECT_THAT(Ask("POST /library.Library/Checkout", "{}"), StartsWith("HTTP/1.1 500"));
  other.Write("GET /v1/shelves/1/books/2 HTTP/1.1\r\nhost: x\r\n\r\n");
  EXPECT_THAT(other.Read(), StartsWith("HTTP/1.1 200"));
  EXPECT_EQ(ContainedExceptions(), before + 1);
  EXPECT_TRUE(gateway().Stop(Deadline::In(kMaxTestWait)));
}

// A trailer of 70 KB ended the process.
TEST_F(GatewayTest, LongTrailersAreRefused) {
  const std::string post = "POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n0\r\na: ";
  Peer peer = Connect(), other = Connect();
  peer.Write(post + std::string(70'000, 'x') + "\r\n\r\n");
  EXPECT_THAT(peer.Read(), StartsWith("HTTP/1.1 431"));
  other.Write(kNowhere);
  EXPECT_THAT(other.Read(), StartsWith("HTTP/1.1 404"));
}

TEST_F(GatewayTest, CallsEndAtTheirDeadline) {
  const std::string slow = R"({"title":"slow"})";
  EXPECT_THAT(
      Ask("POST /library.Library/Checkout", slow, "grpc-timeout: 50m\r\ncontent-type: application/json\r\n"),
      StartsWith("HTTP/1.1 504"));
  options_.timeout = std::chrono::milliseconds(50);
  gateway_.reset();
  EXPECT_THAT(
      Ask("POST /library.Library/Checkout", slow, "grpc-timeout: 1H\r\ncontent-type: application/json\r\n"),
      StartsWith("HTTP/1.1 504"));
}

TEST_F(GatewayTest, StopsWhenRequestsInFlightAreAnswered) {
  Peer idle = Connect();
  Peer busy = Connect();
  busy.Write(
      "POST /library.Library/Checkout HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
      "grpc-timeout: 300m\r\ncontent-length: 16\r\n\r\n{\"title\":\"slow\"}");
  ASSERT_TRUE(Await([&] { return gateway().stats().requests == 1; }));
  EXPECT_TRUE(gateway().Stop(Deadline::In(kMaxTestWait)));
  EXPECT_THAT(busy.Read(), AllOf(StartsWith("HTTP/1.1 504"), HasSubstr("connection: close")));
  EXPECT_TRUE(idle.Closed());
}

// While it lingers it serves whoever comes, and says that it is the last time. With HTTP/2: http2_codec_test.
TEST_F(GatewayTest, LingersUntilItsClientsHaveLeft) {
  constexpr std::string_view kAsked = "GET /v1/shelves/1/books/2 HTTP/1.1\r\nhost: x\r\n\r\n";
  const auto last_answer = AllOf(StartsWith("HTTP/1.1 200"), HasSubstr("connection: close"));
  Peer kept = Connect();
  Peer silent = Connect();
  kept.Write(kAsked);
  EXPECT_THAT(kept.Read(), AllOf(StartsWith("HTTP/1.1 200"), Not(HasSubstr("connection: close"))));
  gateway().LastCall();
  // Until its thread has heard of that.
  const Deadline deadline = Deadline::In(kMaxTestWait);
  std::string reply;
  do {
    reply = Ask("GET /v1/shelves/1/books/2");
    EXPECT_THAT(reply, StartsWith("HTTP/1.1 200"));
  } while (reply.find("connection: close") == reply.npos && !deadline.Expired());
  kept.Write(kAsked);
  EXPECT_THAT(kept.Read(), last_answer);
  EXPECT_TRUE(kept.Closed());
  EXPECT_THAT(Ask("GET /v1/shelves/1/books/2"), last_answer);
  EXPECT_TRUE(gateway().Stop(Deadline::In(kMaxTestWait)));
  EXPECT_TRUE(silent.Closed());
  EXPECT_EQ(gateway().stats().failed, 0u);
}

TEST_F(GatewayTest, ADeadTargetIs503) {
  Peer peer = Connect();
  server_.reset();
  peer.Write("GET /v1/shelves/1/books/2 HTTP/1.1\r\nhost: x\r\n\r\n");
  EXPECT_THAT(peer.Read(), StartsWith("HTTP/1.1 503"));
}

TEST_F(GatewayTest, SpeaksHttp2) {
  RunOptions run;
  run.targets = {Join("http://", gateway().address(), "/v1/shelves/1/books/2")};
  run.http = HttpOptions{.http2 = true};
  run.warmup = Nanos::zero();
  run.requests = 500;
  run.timeout = kMaxTestWait;
  const auto workload = MakeHttpWorkload({}, 1);
  ASSERT_TRUE(workload.ok()) << workload.status();
  const absl::StatusOr<LoadResult> result = RunClosedLoop(run, **workload, 16, kMaxTestWait);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_GE(gateway().stats().requests, 500u);
  EXPECT_EQ(gateway().stats().failed, 0u);
}

TEST_F(GatewayTest, WrongOptionsAreErrors) {
  const absl::StatusOr<Catalog> catalog =
      Catalog::FromServer(options_.target, options_.channel, kMaxTestWait);
  ASSERT_TRUE(catalog.ok());
  options_.forward_headers = {"content-type"};
  EXPECT_EQ(Gateway::Start(options_, *catalog).status().code(), absl::StatusCode::kInvalidArgument);
  options_.forward_headers.clear();
  options_.listen = gateway().address();
  EXPECT_EQ(Gateway::Start(options_, *catalog).status().code(), absl::StatusCode::kAlreadyExists);
}

}  // namespace
}  // namespace curtail::gateway
