// SPDX-License-Identifier: Apache-2.0
//
// The gateway in front of a real server, spoken to through sockets, byte by byte.
#include "curtail/gateway/gateway.h"

#include <atomic>
#include <optional>
#include <string>
#include <thread>

#include "curtail/base/strings.h"
#include "curtail/base/testing.h"
#include "curtail/gateway/testing/gateway_fixture.h"
#include "curtail/load/drive/runner.h"
#include "curtail/load/message/http_workload.h"
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
                    HasSubstr("grpc-metadata-x-floor: 2\r\n"), HasSubstr("grpc-metadata-x-shelf: one\r\n"),
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
              AllOf(StartsWith("HTTP/1.1 404 Not Found\r\n"), HasSubstr("grpc-metadata-x-floor: 2\r\n"),
                    HasSubstr("grpc-metadata-x-shelf: one\r\n"),
                    HasSubstr(R"({"code":5,"message":"no \"such\" book","details":[]})")));
  EXPECT_THAT(Ask("GET /nowhere"), StartsWith("HTTP/1.1 404"));
  EXPECT_THAT(Ask("PUT /v1/shelves/1/books/2"),
              AllOf(StartsWith("HTTP/1.1 405"), HasSubstr("allow: GET, PATCH\r\n")));
  for (const char* query : {"nothing=1", "shelf=x", "kind=NO", "mark=!", "author=x", "author.name.first=x",
                            "pageSize=99999999999", "tag=%ff", "author.nothing=x"}) {
    EXPECT_THAT(Ask(Join("GET /v1/shelves/1/books?", query)), StartsWith("HTTP/1.1 400")) << query;
  }
  EXPECT_THAT(Ask("POST /library.Library/GetBook", "{"),
              AllOf(StartsWith("HTTP/1.1 400"), HasSubstr("in JSON: "), Not(HasSubstr("\\n"))));
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

TEST_F(GatewayTest, TheTargetHearsWhereTheClientIs) {
  const auto title = [&] {
    return Ask("GET /v1/shelves/1/books/client", {}, "x-forwarded-for: 192.0.2.1\r\n");
  };
  EXPECT_THAT(title(), HasSubstr(R"("title":"127.0.0.1")")) << "a client does not say it itself";
  gateway_.reset();
  options_.forward_headers = {"x-forwarded-for"};
  EXPECT_THAT(title(), HasSubstr(R"("title":"192.0.2.1")")) << "a proxy does";
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

// Property: a page whose own name resolves to the gateway's address is not a page of the gateway.
TEST_F(GatewayTest, OnlyItsOwnHostsAreServed) {
  const auto ask = [&](std::string_view host, std::string_view target = "/v1/shelves/1/books/2") {
    Peer peer = Connect();
    peer.Write(Join("GET ", target, " HTTP/1.1\r\nhost: ", host, "\r\norigin: http://", host, "\r\n\r\n"));
    return peer.Read();
  };
  options_.allowed_hosts = {"Shop.example:443"};
  for (const std::string_view host :
       {"127.0.0.1:1", "[::1]:80", "localhost", "shop.example", "SHOP.example:80"}) {
    EXPECT_THAT(ask(host), StartsWith("HTTP/1.1 200")) << host;
  }
  const auto refused = AllOf(StartsWith("HTTP/1.1 421"), HasSubstr("--allow-host"));
  for (const std::string_view host :
       {"evil.example", "evil.example:80", "shop.example.evil", "127.0.0.1.evil"}) {
    EXPECT_THAT(ask(host), refused) << host;
  }
  EXPECT_THAT(ask("localhost", "http://evil.example/v1/shelves/1/books/2"), refused);
  EXPECT_EQ(gateway().stats().refused, 5u);
  Peer http2 = Connect();
  http2.Write(Preface() + GetFrame(1, "/v1/shelves/1/books/2"));
  EXPECT_THAT(http2.ReadUntil("--allow-host"), HasSubstr("--allow-host")) << "its authority is x";
  gateway_.reset();
  options_.allowed_hosts = {"*"};
  EXPECT_THAT(ask("evil.example"), StartsWith("HTTP/1.1 200"));
}

TEST_F(GatewayTest, AMalformedTimeoutIsRefused) {
  for (const std::string_view timeout : {"soon", "100", "-1m", "123456789m", "1.5S", "1h", "", "100m, 1S"}) {
    const std::string header = Join("grpc-timeout: ", timeout, "\r\n");
    for (const std::string_view path : {"GET /v1/shelves/1/books/2", "GET /v1/watch/a?count=1"}) {
      EXPECT_THAT(Ask(path, {}, header), AllOf(StartsWith("HTTP/1.1 400"), HasSubstr("\"code\":3")))
          << timeout;
    }
    EXPECT_THAT(Ask("POST /library.Library/GetBook", "\0\0\0\0\0"s,
                    header + "content-type: application/grpc-web+proto\r\n"),
                HasSubstr("grpc-status:3\r\n"))
        << timeout;
  }
}

// A page may send a type that is not JSON to any server without asking first.
TEST_F(GatewayTest, OnlyJsonIsJson) {
  options_.accept_forms = true;
  const auto ask = [&](std::string_view method, std::string_view type) {
    return Ask(Join("POST /library.Library/", method), "{}", Join("content-type: ", type, "\r\n"));
  };
  for (const std::string_view type :
       {"application/json", "application/json;charset=utf-8", "Application/JSON ; charset=utf-8"}) {
    EXPECT_THAT(ask("GetBook", type), StartsWith("HTTP/1.1 200")) << type;
  }
  for (const std::string_view type : {"application/jsonp", "application/json+x", "application/x-ndjson", "",
                                      "text/plain; application/json", "application/x-www-form-urlencoded2"}) {
    EXPECT_THAT(ask("GetBook", type), StartsWith("HTTP/1.1 400")) << type;
  }
  EXPECT_THAT(ask("Donate", "application/x-ndjson"), StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(ask("Donate", "application/x-ndjsons"), StartsWith("HTTP/1.1 400"));
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
  const std::string missing = "\0\0\0\0\x15\n\x13shelves/1/books/404"s;
  EXPECT_THAT(Ask("POST /library.Library/GetBook", missing, type),
              AllOf(HasSubstr("200 OK"), HasSubstr("\r\nx-floor: 2\r\n"), HasSubstr("grpc-status:5\r\n"),
                    HasSubstr("x-shelf:one\r\n")));
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
    BetweenLooks();
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
  options_.services = {"library.Librarian"};
  EXPECT_EQ(Gateway::Start(options_, *catalog).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(GatewayOptions, ErrorsNameTheFlagAndTheRightForm) {
  const auto error = [](auto change) {
    GatewayOptions options{.target = "127.0.0.1:1"};
    change(options);
    return std::string(Message(CheckOptions(options)));
  };
  const auto origin = [&](const char* text) {
    return error([&](GatewayOptions& o) { o.allowed_origins = {text}; });
  };
  const auto host = [&](const char* text) {
    return error([&](GatewayOptions& o) { o.allowed_hosts = {text}; });
  };
  const auto header = [&](const char* text) {
    return error([&](GatewayOptions& o) { o.forward_headers = {text}; });
  };
  EXPECT_EQ(error([](GatewayOptions&) {}), "");
  for (const char* good : {"*", "null", "https://app.example", "http://localhost:3000", "app://one"})
    EXPECT_EQ(origin(good), "");
  EXPECT_EQ(origin("app.example"),
            "--allow-origin: \"app.example\" is not an origin; write https://app.example");
  EXPECT_EQ(origin("https://a/path"), "--allow-origin: \"https://a/path\" is not an origin; write https://a");
  for (const char* good : {"*", "app.example:443", "[::1]"}) EXPECT_EQ(host(good), "");
  EXPECT_EQ(host("a b"), "--allow-host: \"a b\" is not the name of a host; write app.example");
  EXPECT_EQ(header("te"), "--forward-header: te is HTTP's or gRPC's own; leave it out");
  EXPECT_THAT(header("Author ization"), StartsWith("--forward-header: \"author ization\" is not the name"));
  EXPECT_THAT(error([](GatewayOptions& o) { o.channel.balancer = "rr"; }),
              StartsWith("--balancer: there is no balancer \"rr\"; there are "));
  EXPECT_THAT(error([](GatewayOptions& o) { o.target = "127.0.0.1:1,127.0.0.1"; }),
              HasSubstr("\"127.0.0.1\" is not a numeric address"));
  EXPECT_THAT(error([](GatewayOptions& o) { o.listen = "8000"; }), StartsWith("--listen: "));
}

TEST_F(GatewayTest, ServesHealthAndReflectionOnlyIfAsked) {
  const std::string check = "POST /grpc.health.v1.Health/Check";
  EXPECT_THAT(Ask(check, "{}"), StartsWith("HTTP/1.1 404"));
  EXPECT_THAT(Ask("POST /grpc.reflection.v1.ServerReflection/ServerReflectionInfo", "{}"),
              StartsWith("HTTP/1.1 404"));
}

TEST_F(GatewayTest, ServesNoOtherServiceThanAsked) {
  options_.services = {"grpc.health.v1.Health"};
  EXPECT_THAT(Ask("GET /v1/shelves/1/books/2"), StartsWith("HTTP/1.1 404"));
  EXPECT_THAT(Ask("POST /library.Library/GetBook"), StartsWith("HTTP/1.1 404"));
  EXPECT_THAT(Ask("POST /grpc.health.v1.Health/Check", "{}", "content-type: application/json\r\n"),
              StartsWith("HTTP/1.1 200"));
}

}  // namespace
}  // namespace curtail::gateway
