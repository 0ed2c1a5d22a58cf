// SPDX-License-Identifier: Apache-2.0
//
// Both ends of HTTP/2 against nghttp2: random fields, bodies, windows, padding, settings that change, and bytes that come in
// random pieces. What one end sends is what the other hears.
#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "curtail/base/strings.h"
#include "curtail/wire/http/http_client_codec.h"
#include "curtail/wire/http/http_codec.h"
#include "curtail/wire/raw_peer_testing.h"
#include "gtest/gtest.h"

namespace curtail::wire {
namespace {

using curtail::internal::HttpCodec;
using curtail::internal::HttpEndpoint;
using curtail::internal::HttpExchange;
using Fields = RawPeer::Fields;

constexpr unsigned kRuns = 150;
constexpr uint32_t kWindows[] = {1, 100, 5000, 65'535, 1u << 20};

class Random {
 public:
  explicit Random(unsigned seed) : engine_(seed) {}
  size_t To(size_t most) { return std::uniform_int_distribution<size_t>(0, most)(engine_); }
  bool Once(size_t in) { return To(in - 1) == 0; }
  // Mostly short.
  std::string Bytes(size_t most) {
    std::string bytes(To(Once(4) ? most : most / 100), '\0');
    for (char& c : bytes) c = static_cast<char>(engine_());
    return bytes;
  }
  // Visible, and short enough for the limit on header fields. Some come again, and so from the tables.
  std::string Value() {
    if (!values_.empty() && Once(2)) return values_[To(values_.size() - 1)];
    std::string value(To(Once(10) ? 2000 : 20), '\0');
    for (char& c : value) c = static_cast<char>('!' + To('~' - '!'));
    return values_.emplace_back(std::move(value));
  }
  Fields Some() {
    Fields fields;
    for (size_t left = To(5); left > 0; --left)
      fields.emplace_back(Once(4) ? "cookie" : Join("x-", To(30)), Value());
    return fields;
  }
  std::vector<nghttp2_settings_entry> Settings() {
    std::vector<nghttp2_settings_entry> settings = {
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, kWindows[To(std::size(kWindows) - 1)]}};
    if (Once(2)) settings.push_back({NGHTTP2_SETTINGS_HEADER_TABLE_SIZE, static_cast<uint32_t>(To(8192))});
    if (Once(2))
      settings.push_back({NGHTTP2_SETTINGS_MAX_FRAME_SIZE, static_cast<uint32_t>(16'384 + To(100'000))});
    return settings;
  }

 private:
  std::mt19937 engine_;
  std::vector<std::string> values_;
};

// Gives the bytes to `take` in pieces.
template <class Take>
void Feed(Random& random, std::string_view bytes, Take take) {
  const size_t most = random.Once(3) ? 20 : 20'000;
  while (!bytes.empty()) {
    const std::string_view piece = bytes.substr(0, 1 + random.To(most));
    take(piece);
    bytes.remove_prefix(piece.size());
  }
}

// Moves bytes both ways until both ends are silent. `take` gets the bytes that nghttp2 sent.
template <class Codec, class Take>
void Pump(Random& random, RawPeer& nghttp2, Codec& codec, Take take) {
  for (bool moved = true; moved;) {
    const std::string in = nghttp2.Output();
    Feed(random, in, take);
    std::string out;
    codec.Pull(&out, 1 + random.To(100'000));
    Feed(random, out, [&](std::string_view piece) {
      const auto* bytes = reinterpret_cast<const uint8_t*>(piece.data());
      ASSERT_EQ(nghttp2_session_mem_recv(nghttp2.h2, bytes, piece.size()),
                static_cast<ssize_t>(piece.size()));
    });
    moved = !in.empty() || !out.empty();
    if (moved && random.Once(20)) {
      const auto settings = random.Settings();
      nghttp2_submit_settings(nghttp2.h2, NGHTTP2_FLAG_NONE, settings.data(), settings.size());
    }
  }
}

// As a server passes them on.
Fields Merged(const Fields& fields) {
  Fields merged;
  std::string cookies;
  for (const auto& [name, value] : fields) {
    if (name.starts_with(':')) continue;
    if (name == "cookie") {
      cookies += (cookies.empty() ? "" : "; ") + value;
    } else {
      merged.emplace_back(name, value);
    }
  }
  merged.emplace_back("host", "h");
  if (!cookies.empty()) merged.emplace_back("cookie", cookies);
  return merged;
}
Fields Listed(const Metadata& metadata) {
  Fields fields;
  for (const auto& [name, value] : metadata) fields.emplace_back(name, value);
  return fields;
}

struct Call {
  Fields fields;
  std::string body;
  int status;
  Fields reply_fields;
  std::string reply;
};

Call RandomCall(Random& random) {
  Call call{
      random.Some(), random.Bytes(60'000), static_cast<int>(200 + random.To(399)), {}, random.Bytes(60'000)};
  if (call.status == 204 || call.status == 304) call.reply.clear();
  for (auto& [name, value] : random.Some()) call.reply_fields.emplace_back(name, value);
  return call;
}

// ----- a server of ours -----------------------------------------------------------------------------------

Fields Joined(Fields first, const Fields& more) {
  first.insert(first.end(), more.begin(), more.end());
  return first;
}

// Makes a request, with its length or without. Its fields in `call` are those that were sent.
int32_t Ask(Random& random, RawPeer& client, Call& call) {
  call.fields =
      Joined({{":method", "POST"}, {":scheme", "http"}, {":path", "/p"}, {":authority", "h"}}, call.fields);
  if (random.Once(3)) call.fields.emplace_back("content-length", Join(call.body.size()));
  return client.Request(call.fields, call.body);
}

// Compares the request with the call that it is, and answers, in one part or two.
void AnswerOne(Random& random, HttpServerCodec& codec, const HttpRequest& request, const Call& call) {
  EXPECT_EQ(request.verb, "POST");
  EXPECT_EQ(request.target, "/p");
  EXPECT_EQ(Listed(request.headers), Merged(call.fields));
  EXPECT_TRUE(request.body == call.body);
  const size_t first = random.Once(2) ? call.reply.size() : random.To(call.reply.size());
  const bool more = first < call.reply.size();
  codec.Reply(request.stream, {call.status, call.reply_fields, call.reply.substr(0, first), more});
  if (more) codec.AddBody(request.stream, std::string_view(call.reply).substr(first), /*last=*/true);
}

void ExpectAnswered(const RawPeer::Stream& heard, const Call& call) {
  ASSERT_EQ(heard.blocks.size(), 1u);
  Fields fields = heard.blocks[0];
  std::erase_if(fields, [](const auto& field) { return field.first == "content-length"; });
  EXPECT_EQ(fields, Joined({{":status", Join(call.status)}}, call.reply_fields));
  EXPECT_TRUE(heard.data == call.reply && heard.ended && !heard.reset);
}

TEST(Http2Differential, AServerHearsAndAnswersClientsOfNghttp2) {
  for (unsigned seed = 0; seed < kRuns; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    RawPeer client(Role::kClient, random.Settings());
    client.padding = random.Once(2) ? random.To(255) : 0;
    const auto codec = MakeHttp2Codec({.max_head_bytes = 64u << 10});
    std::map<int32_t, Call> calls;
    size_t answered = 0;
    for (size_t round = 0; round < 3; ++round) {
      for (size_t left = random.To(6); left > 0; --left) {
        Call call = RandomCall(random);
        const int32_t id = Ask(random, client, call);
        calls.emplace(id, std::move(call));
      }
      Pump(random, client, *codec, [&](std::string_view piece) {
        std::vector<HttpRequest> requests;
        const absl::Status status = codec->Receive(piece, &requests);
        ASSERT_TRUE(status.ok()) << status;
        for (const HttpRequest& request : requests)
          AnswerOne(random, *codec, request, calls.at(request.stream));
        answered += requests.size();
      });
    }
    ASSERT_EQ(answered, calls.size());
    for (const auto& [id, call] : calls) ExpectAnswered(client.streams[id], call);
    EXPECT_EQ(codec->held_bytes(), 0u);
  }
}

// ----- a client of ours -----------------------------------------------------------------------------------

struct Exchange {
  Call call;
  HttpExchange exchange;
  bool answered = false;
};

void Start(Random& random, HttpCodec& codec, const HttpEndpoint& endpoint, Exchange& started) {
  started.call = RandomCall(random);
  started.exchange.endpoint = &endpoint;
  for (const auto& [name, value] : started.call.fields) started.exchange.headers.Add(name, value);
  started.exchange.body = started.call.body;
  codec.Start(&started.exchange);
}

// Answers the requests that have come whole. False: there are none.
bool AnswerWhole(Random& random, RawPeer& server, std::deque<Exchange>& exchanges) {
  bool any = false;
  for (Exchange& e : exchanges) {
    const int32_t id = e.exchange.stream;
    if (!server.streams[id].ended || std::exchange(e.answered, server.streams[id].ended)) continue;
    const Fields trailers = random.Once(3) ? Fields{{"x-trailer", "1"}} : Fields{};
    server.Reply(id, Joined({{":status", Join(e.call.status)}}, e.call.reply_fields), e.call.reply, trailers);
    any = true;
  }
  return any;
}

void ExpectAnswered(const RawPeer::Stream& heard, const Exchange& e) {
  Fields sent =
      Joined({{":method", "PUT"}, {":scheme", "http"}, {":authority", "h"}, {":path", "/p"}}, e.call.fields);
  if (!e.call.body.empty()) sent.emplace_back("content-length", Join(e.call.body.size()));
  ASSERT_EQ(heard.blocks.size(), 1u);
  EXPECT_EQ(heard.blocks[0], sent);
  EXPECT_TRUE(heard.data == e.call.body);
  EXPECT_TRUE(e.exchange.error.ok()) << e.exchange.error;
  EXPECT_EQ(e.exchange.status, e.call.status);
  EXPECT_TRUE(e.exchange.reply == e.call.reply);
}

TEST(Http2Differential, AClientIsHeardAndAnsweredByServersOfNghttp2) {
  const HttpEndpoint endpoint{"PUT", "http", "h", "/p"};
  for (unsigned seed = 0; seed < kRuns; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    auto settings = random.Settings();
    settings.push_back({NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, static_cast<uint32_t>(1 + random.To(5))});
    RawPeer server(Role::kServer, settings);
    server.padding = random.Once(2) ? random.To(255) : 0;
    const std::unique_ptr<HttpCodec> codec = curtail::internal::MakeHttp2Codec({});
    HttpCodec::Ended ended;
    const auto take = [&](std::string_view piece) {
      const absl::Status status = codec->Receive(piece, &ended);
      ASSERT_TRUE(status.ok()) << status;
    };
    Pump(random, server, *codec, take);  // it knows how many requests it may make
    std::deque<Exchange> exchanges(1 + random.To(10));
    for (Exchange& e : exchanges) Start(random, *codec, endpoint, e);
    do Pump(random, server, *codec, take);
    while (AnswerWhole(random, server, exchanges));
    ASSERT_EQ(ended.size(), exchanges.size());
    for (const Exchange& e : exchanges) ExpectAnswered(server.streams[e.exchange.stream], e);
    EXPECT_FALSE(codec->Finished());
  }
}

}  // namespace
}  // namespace curtail::wire
