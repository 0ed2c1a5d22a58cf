// SPDX-License-Identifier: Apache-2.0
#include "curtail/gateway/static_files.h"

#include "curtail/base/embedded_file.h"
#include "curtail/base/strings.h"
#include "curtail/base/testing.h"
#include "curtail/gateway/page/page.h"
#include "curtail/gateway/testing/gateway_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace curtail::gateway {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

std::string ErrorOf(std::vector<StaticFile> files) {
  const absl::Status status = StaticFiles::Make(std::move(files)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  return std::string(Message(status));
}

// The value of a header.
std::string Header(const std::string& reply, const std::string& name) {
  const size_t from = reply.find("\r\n" + name + ": ");
  if (from == std::string::npos) return "";
  const size_t value = from + name.size() + 4;
  return reply.substr(value, reply.find("\r\n", value) - value);
}

TEST(StaticFiles, WrongNamesAreErrors) {
  EXPECT_THAT(ErrorOf({{"", "x"}}), HasSubstr("not a name"));
  EXPECT_THAT(ErrorOf({{"a b.html", "x"}}), HasSubstr("not a name"));
  EXPECT_THAT(ErrorOf({{"page.exe", "x"}}), HasSubstr("no type"));
  EXPECT_THAT(ErrorOf({{"a.css", "x"}, {"a.css", "y"}}), HasSubstr("twice"));
}

TEST(StaticFiles, TheIndexIsAtTheRootToo) {
  const auto files = StaticFiles::Make({{"index.html", "<p>"}, {"img/a.png", "\x89PNG"}});
  ASSERT_TRUE(files.ok()) << files.status();
  EXPECT_THAT(files->paths(), ElementsAre("/", "/img/a.png", "/index.html"));
  EXPECT_EQ(files->Find("/")->bytes, "<p>");
  EXPECT_EQ(files->Find("/img/a.png")->type, "image/png");
  EXPECT_EQ(files->Find("img/a.png"), nullptr);
}

class StaticFilesTest : public GatewayTest {
 protected:
  StaticFilesTest() { options_.files = {{"index.html", "<p>hello"}, {"app.js", "'use strict'"}}; }
};

TEST_F(StaticFilesTest, AreServedBesideTheMethods) {
  const std::string page = Ask("GET /");
  EXPECT_THAT(page, AllOf(StartsWith("HTTP/1.1 200"), EndsWith("\r\n\r\n<p>hello")));
  EXPECT_EQ(Header(page, "content-type"), "text/html; charset=utf-8");
  EXPECT_EQ(Header(page, "x-content-type-options"), "nosniff");
  EXPECT_THAT(
      Header(page, "content-security-policy"),
      AllOf(HasSubstr("default-src 'none'"), HasSubstr("script-src 'self'"), Not(HasSubstr("unsafe"))));
  EXPECT_EQ(Header(Ask("GET /app.js?v=1"), "content-type"), "text/javascript; charset=utf-8");
  EXPECT_THAT(Ask("GET /v1/shelves/1/books/2"), HasSubstr("as of 0"));
}

TEST_F(StaticFilesTest, HeadHasTheLengthAndNoBody) {
  Peer peer = Connect();
  peer.Write("HEAD / HTTP/1.1\r\nhost: x\r\n\r\n");
  const std::string head = peer.ReadUntil("\r\n\r\n");
  EXPECT_THAT(head,
              AllOf(StartsWith("HTTP/1.1 200"), HasSubstr("content-length: 8\r\n"), EndsWith("\r\n\r\n")));
  // The connection goes on: no body has come in between.
  peer.Write("GET /app.js HTTP/1.1\r\nhost: x\r\n\r\n");
  EXPECT_THAT(peer.Read(), AllOf(StartsWith("HTTP/1.1 200"), EndsWith("'use strict'")));
}

TEST_F(StaticFilesTest, AClientThatHasTheFileIsToldSo) {
  const std::string etag = Header(Ask("GET /"), "etag");
  EXPECT_NE(etag, Header(Ask("GET /app.js"), "etag"));
  for (const std::string& tags : {etag, "W/" + etag, "\"other\", " + etag, std::string("*")}) {
    Peer peer = Connect();
    peer.Write(Join("GET / HTTP/1.1\r\nhost: x\r\nif-none-match: ", tags, "\r\n\r\n"));
    const std::string reply = peer.ReadUntil("\r\n\r\n");
    EXPECT_THAT(reply,
                AllOf(StartsWith("HTTP/1.1 304"), Not(HasSubstr("content-length")), EndsWith("\r\n\r\n")));
    EXPECT_EQ(Header(reply, "etag"), etag);
    peer.Write("GET /app.js HTTP/1.1\r\nhost: x\r\n\r\n");
    EXPECT_THAT(peer.Read(), EndsWith("'use strict'"));
  }
  EXPECT_THAT(Ask("GET /", {}, "if-none-match: \"other\"\r\n"), StartsWith("HTTP/1.1 200"));
}

TEST_F(StaticFilesTest, OtherVerbsAre405) {
  EXPECT_THAT(Ask("POST /", "{}"), AllOf(StartsWith("HTTP/1.1 405"), HasSubstr("allow: GET, HEAD\r\n")));
  EXPECT_THAT(Ask("DELETE /app.js"), StartsWith("HTTP/1.1 405"));
}

TEST_F(StaticFilesTest, NothingElseIsFound) {
  for (const char* path : {"/../app.js", "/./app.js", "//app.js", "/%61pp.js", "/app.js/", "/app.js%00",
                           "/etc/passwd", "/..%2f..%2fetc/passwd", "/APP.JS"}) {
    EXPECT_THAT(Ask(Join("GET ", path)), StartsWith("HTTP/1.1 404")) << path;
  }
}

TEST_F(StaticFilesTest, AWholeUrlIsATarget) {
  EXPECT_THAT(Ask("GET http://localhost:8080/app.js"), EndsWith("'use strict'"));
  EXPECT_THAT(Ask("GET http://localhost:8080"), EndsWith("<p>hello"));
  EXPECT_THAT(Ask("GET http://localhost:8080/v1/shelves/1/books/2?as_of=1970-01-01T00:01:00Z"),
              HasSubstr("as of 60"));
}

TEST_F(StaticFilesTest, AFileMayNotHideAMethod) {
  const absl::StatusOr<Catalog> catalog =
      Catalog::FromServer(options_.target, options_.channel, kMaxTestWait);
  ASSERT_TRUE(catalog.ok());
  options_.files = {{"v1/watch/app.js", "x"}};
  const absl::Status status = Gateway::Start(options_, *catalog).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(Message(status)), HasSubstr("/v1/watch/app.js"));
}

class PageTest : public testing::TestWithParam<const char*> {};

INSTANTIATE_TEST_SUITE_P(Configs, PageTest, testing::Values("SDB1-2", "FIB1", "ADB1-2-2"),
                         [](const auto& info) { return std::string(info.param, 3); });

TEST_P(PageTest, AServerGivesItsFiles) {
  static const EmbeddedFile kFiles[] = {{"index.html", "<p>"}, {"app.js", {"\0\xff", 2}}};
  ServerOptions options;
  options.config = *Config::Parse(GetParam());
  options.listen = {"127.0.0.1:0"};
  std::vector<std::unique_ptr<Service>> services;
  services.push_back(MakePage(kFiles));
  const auto server = Server::Start(std::move(options), std::move(services));
  ASSERT_TRUE(server.ok()) << server.status();
  const std::string& address = (*server)->addresses()[0];
  const auto catalog = Catalog::FromServer(address, {}, kMaxTestWait);
  ASSERT_TRUE(catalog.ok()) << catalog.status();
  EXPECT_TRUE(catalog->FindMethod(kPageMethod).ok());
  const auto files = ReadPage(address, {}, kMaxTestWait);
  ASSERT_TRUE(files.ok()) << files.status();
  ASSERT_EQ(files->size(), 2u);
  EXPECT_EQ((*files)[0].name, "index.html");
  EXPECT_EQ((*files)[1].bytes, std::string("\0\xff", 2));
}

}  // namespace
}  // namespace curtail::gateway
