// SPDX-License-Identifier: Apache-2.0
//
// Hostile input's cost to the parsers of every port: CPU milliseconds for each megabyte that a peer sends, which opens the
// next connection when the last one is closed on it; and how many times that is the cost of the first row, which is honest,
// as the next two are. HTTP/2 reaches a server's session and the gateway's codec; HTTP/1.1 reaches one codec, with the
// limits of the gateway and with those of the admin port. bench/victims attacks the ports themselves.
//
//   hostile_bench [NAME]...

#include <time.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "curtail/wire/http/http2_frames_testing.h"
#include "curtail/wire/http/http_codec.h"
#include "curtail/wire/session.h"

namespace curtail::wire {
namespace {

constexpr size_t kBytes = 8u << 20;
constexpr size_t kReadChunk = 16u << 10;  // of a connection at a time, as the gateway reads

// Serves nothing: calls stay open until their request ends, which is answered with an empty message.
class GrpcServer final : public Events {
 public:
  bool Receive(std::string_view bytes) {
    const bool open = session_.Receive(bytes).ok();
    do out_.clear();
    while (session_.Pull(&out_));
    return open;
  }

 private:
  void* OnRequest(StreamId, RequestHead&&) override { return this; }
  void OnMessage(StreamId, void*, std::string&&) override {}
  void OnRequestEnd(StreamId id, void*) override {
    session_.SendMessage(id, "");
    session_.EndCall(id, absl::OkStatus());
  }
  void OnCallEnd(StreamId, void*, absl::Status&&, Metadata&&) override {}
  TimePoint now() override { return Now(); }

  Session session_{Role::kServer, {}, this};
  std::string out_;
};

// Answers what is whole with an empty body.
class HttpServer final {
 public:
  explicit HttpServer(std::unique_ptr<HttpServerCodec> codec) : codec_(std::move(codec)) {}

  bool Receive(std::string_view bytes) {
    bool open = true;
    do {  // HTTP/1.1 goes on with the next request once the last one is answered
      requests_.clear();
      open = open && codec_->Receive(std::exchange(bytes, {}), &requests_).ok();
      for (const HttpRequest& request : requests_) codec_->Reply(request.stream, {});
    } while (!requests_.empty());
    do {
      out_.clear();
      codec_->Pull(&out_, 256u << 10);
    } while (!out_.empty());
    return open && !codec_->Finished();
  }

 private:
  const std::unique_ptr<HttpServerCodec> codec_;
  std::vector<HttpRequest> requests_;
  std::string out_;
};

// POST, http, and a host that nothing puts into the table.
constexpr std::string_view kPost = "\x83\x86\1\1h";

std::string Post(std::string_view more) { return std::string(kPost).append(more); }

// A whole request's fields; from the second call on, two of them from the table.
std::string Fields() {
  return Post(Literal('\x40', ":path", "/a.B/C") + Literal('\x40', "content-type", "application/grpc"));
}
std::string Again() { return Post("\xbf\xbe"); }

// One kind of input: what comes first, and what follows again and again. `stream` is the next id of HTTP/2.
struct Attack {
  const char* name;
  std::function<std::string(uint32_t* stream)> begin;
  std::function<std::string(uint32_t* stream)> go_on;
  bool leaves = false;  // the peer closes each connection after what comes first
};

std::string Open(uint32_t* stream, int count, uint8_t flags = 4) {
  std::string out;
  for (int i = 0; i < count; ++i, *stream += 2)
    out += Frame(1, flags, *stream, *stream == 1 ? Fields() : Again());
  return out;
}

std::string Repeat(std::string_view text, size_t times) {
  std::string out;
  for (size_t i = 0; i < times; ++i) out.append(text);
  return out;
}

std::function<std::string(uint32_t*)> Opened(int count) {
  return [count](uint32_t* stream) { return Open(stream, count); };
}
std::function<std::string(uint32_t*)> Same(std::string bytes, size_t times = 500) {
  return [bytes = Repeat(bytes, times)](uint32_t*) { return bytes; };
}
// A block, each time on a stream of its own.
std::function<std::string(uint32_t*)> Blocks(std::string block, int times = 100) {
  return [block = std::move(block), times](uint32_t* stream) {
    std::string out;
    for (int i = 0; i < times; ++i, *stream += 2) out += Frame(1, 4 | 1, *stream, block);
    return out;
  };
}

std::vector<Attack> Http2Attacks() {
  using std::string_literals::operator""s;
  const std::string window1 = "\0\4\0\1\0\0"s, window2 = "\0\4\0\2\0\0"s;
  const std::string table1 = "\0\1\0\0\0\0"s, table2 = "\0\1\0\0\x10\0"s;
  const std::string bad(4000, 'A');
  const std::string commas(1950, ',');
  const auto none = [](uint32_t*) { return std::string(); };
  const auto entries = [](size_t count, std::string name, std::string value) {
    return [=](uint32_t* stream) {
      std::string out = Open(stream, 1, 4 | 1);
      out += Frame(1, 5, *stream, Repeat(Literal('\x40', name, value), count));
      *stream += 2;
      return out;
    };
  };
  const auto entry = [entries](std::string name, std::string value) {
    return entries(1, std::move(name), std::move(value));
  };
  return {
      {"whole calls of one empty message", none,
       [](uint32_t* stream) {
         std::string out;
         for (int i = 0; i < 100; ++i, *stream += 2)
           out +=
               Frame(1, 4, *stream, *stream == 1 ? Fields() : Again()) + Frame(0, 1, *stream, "\0\0\0\0\0"s);
         return out;
       }},
      {"DATA of long messages", Opened(1),
       Same(Frame(0, 0, 1, "\0\0\0\x3f\xfb"s + std::string(16379, 'm')), 8)},
      {"requests of 300 bytes", none,
       Blocks(Post(Literal('\0', ":path", "/v1/shelves/1/books") +
                   Literal('\0', "cookie", std::string(200, 'c'))))},
      {"SETTINGS, a window 2,730 times, 4,095 streams", Opened(4095),
       Same(Frame(4, 0, 0, Repeat(window1 + window2, 1365)), 8)},
      {"SETTINGS, small, 4,095 streams", Opened(4095),
       Same(Frame(4, 0, 0, window1) + Frame(4, 0, 0, window2))},
      {"SETTINGS, a table's size 2,730 times", Opened(1),
       Same(Frame(4, 0, 0, Repeat(table1 + table2, 1365)), 8)},
      {"a bad name of 4 KB by index", entry(bad, ""), Blocks(Post(Repeat("\x0f\x2f\1v"s, 60)))},
      {"a bad name of 4 KB by index, inserted", entry(bad, ""), Blocks(Post(Repeat("\x7e\1v"s, 16)))},
      {"a long name by index, inserted", entry(std::string(3900, 'a'), ""),
       Blocks(Post(Repeat("\x7e\1v"s, 16)))},
      {"the same without a value", entry(std::string(3900, 'a'), ""), Blocks(Post(Repeat("\x7e\0"s, 16)))},
      {"the same, 8,000 times a block", entry(std::string(3900, 'a'), ""),
       Blocks(Post(Repeat("\x7e\0"s, 8000)), 1)},
      {"1,950 commas in a -bin value", Opened(1), Blocks(Literal('\0', "x-bin", commas))},
      {"17 values of a -bin key by index", entry("x-bin", std::string(16, ',')),
       Blocks(Post("\xc0\xbf\xbe"))},
      {"31 values of a -bin key by index", entry("x-bin", std::string(30, ',')),
       Blocks(Post("\xc0\xbf\xbe"))},
      {"metadata by index", entry("a", ""), Blocks(Post("\xc0\xbf" + Repeat("\xbe", 200)))},
      {"long metadata by index", entry("a-name-longer-than-sso-permits", "a value longer than that as well"),
       Blocks(Post("\xc0\xbf" + Repeat("\xbe", 150)))},
      {"4 values of 3,900 bytes by index", entry("a", std::string(3900, 'v')),
       Blocks(Post("\xc0\xbf" + Repeat("\xbe", 4)))},
      {"4 values of 3,900 bytes of a -bin key by index", entry("x-bin", std::string(3900, 'A')),
       Blocks(Post("\xc0\xbf" + Repeat("\xbe", 4)))},
      {"16 values of a -bin key by index, in turn", entries(16, "x-bin", std::string(200, 'A')),
       Blocks(
           Post("\xcf\xce" + Repeat("\xbe\xbf\xc0\xc1\xc2\xc3\xc4\xc5\xc6\xc7\xc8\xc9\xca\xcb\xcc\xcd", 4)))},
      {"a content-length of 3,900 zeros by index", entry("content-length", std::string(3900, '0')),
       Blocks(Post("\xc0\xbf" + Repeat("\xbe", 4)))},
      {"blocks without a path", Opened(1), Blocks("\x83\x86"s)},
      {"more fields than allowed", entry("a", std::string(3000, 'v')),
       Blocks(Post("\xc0\xbf" + Repeat("\xbe", 60)))},
      {"a field of 4 KB by index, 16,000 times", entry("a", std::string(3900, 'v')),
       Blocks(Post("\xc0\xbf" + Repeat("\xbe", 16000)), 1)},
      {"a cookie of 4 KB by index, 16,000 times", entry("cookie", std::string(3900, 'v')),
       Blocks(Post("\xc0\xbf" + Repeat("\xbe", 16000)), 1)},
      {"the same, of streams that are closed",
       [entry](uint32_t* stream) {
         return entry("a", std::string(3900, 'v'))(stream) + Frame(3, 0, 1, "\0\0\0\x8"s);
       },
       [](uint32_t*) { return Frame(1, 5, 1, Repeat("\xbe", 16000)); }},
      {"HEADERS and RST_STREAM", none,
       [](uint32_t* stream) {
         std::string out;
         for (int i = 0; i < 100; ++i, *stream += 2)
           out +=
               Frame(1, 4, *stream, *stream == 1 ? Fields() : Again()) + Frame(3, 0, *stream, "\0\0\0\x8"s);
         return out;
       }},
      {"HEADERS, then a zero WINDOW_UPDATE", none,
       [](uint32_t* stream) {
         std::string out;
         for (int i = 0; i < 100; ++i, *stream += 2)
           out += Frame(1, 4, *stream, *stream == 1 ? Fields() : Again()) + Frame(8, 0, *stream, "\0\0\0\0"s);
         return out;
       }},
      {"CONTINUATION of one byte", none,
       [](uint32_t* stream) {
         std::string out = Frame(1, 0, *stream, "\x83");
         for (int i = 0; i < 60; ++i) out += Frame(9, 0, *stream, "\x86");
         out += Frame(9, 4, *stream, "\x86");
         *stream += 2;
         return out;
       }},
      {"PING", none, Same(Frame(6, 0, 0, "12345678"))},
      {"PRIORITY", none, Same(Frame(2, 0, 1, "\0\0\0\0\1"s))},
      {"empty DATA", Opened(1), Same(Frame(0, 0, 1, ""))},
      {"DATA of one byte of a message", Opened(1), Same(Frame(0, 0, 1, "\0"s))},
      {"empty messages", Opened(1), Same(Frame(0, 0, 1, Repeat("\0\0\0\0\0"s, 3000)), 10)},
      {"WINDOW_UPDATE", Opened(1), Same(Frame(8, 0, 1, "\0\0\0\1"s))},
      {"unknown frames", none, Same(Frame(77, 0, 1, ""))},
      {"RST_STREAM of a closed stream", [](uint32_t* s) { return Open(s, 1, 5); },
       Same(Frame(3, 0, 1, "\0\0\0\x8"s))},
      {"DATA on a closed stream", [](uint32_t* s) { return Open(s, 1, 5); }, Same(Frame(0, 0, 1, "x"))},
  };
}

// A request of HTTP/1.1 without a body, and the head of one with it.
std::string Get(std::string_view fields = {}) {
  return std::string("GET /v1/shelves/1/books HTTP/1.1\r\nhost: x\r\n").append(fields) + "\r\n";
}
std::string Put(std::string_view fields) {
  return std::string("PUT /v1/shelves/1/books/1 HTTP/1.1\r\nhost: x\r\n").append(fields) + "\r\n";
}

// The heads and the bodies are of 7 and 4 KB, to be within the admin port's limits.
std::vector<Attack> Http1Attacks() {
  const auto nothing = [](uint32_t*) { return std::string(); };
  const auto again = [&](const char* name, const std::string& bytes) {
    return Attack{name, nothing, Same(bytes, 1 + (64u << 10) / bytes.size())};
  };
  const auto endless = [](const char* name, const std::string& first, const std::string& bytes) {
    return Attack{name, [=](uint32_t*) { return first; }, Same(bytes)};
  };
  const auto then_gone = [&](const char* name, const std::string& bytes) {
    return Attack{name, [=](uint32_t*) { return bytes; }, nothing, /*leaves=*/true};
  };
  const std::string chunked = Put("transfer-encoding: chunked\r\n");
  const std::string seven_kb(7000, 'a');
  const std::string cookie = "cookie: " + std::string(200, 'c') + "\r\n";
  return {
      again("requests of curl", Get("User-Agent: curl/8.5.0\r\nAccept: */*\r\n")),
      again("requests of 300 bytes", Get("accept: */*\r\nuser-agent: curl/8.5.0\r\n" + cookie)),
      again("bodies of 4 KB", Put("content-length: 4000\r\n") + std::string(4000, 'b')),
      again("bodies of 4 KB in chunks of 500 bytes",
            chunked + Repeat("1f4\r\n" + std::string(500, 'b') + "\r\n", 8) + "0\r\n\r\n"),
      again("requests as short as can be", "GET / HTTP/1.1\r\nhost:x\r\n\r\n"),
      then_gone("the same, a connection each", "GET / HTTP/1.1\r\nhost:x\r\n\r\n"),
      again("1,700 fields of a byte", Get(Repeat("a:\r\n", 1700))),
      again("the same, and a whole URL",
            "GET http://x/ HTTP/1.1\r\nhost:x\r\n" + Repeat("a:\r\n", 1700) + "\r\n"),
      again("a field of 7 KB", Get("a:" + seven_kb + "\r\n")),
      again("a field whose name has 7 KB", Get(std::string(7000, 'A') + ":\r\n")),
      again("a target of 7 KB", "GET /" + seven_kb + " HTTP/1.1\r\nhost:x\r\n\r\n"),
      again("3,500 options of a connection", Get("connection:" + Repeat("a,", 3500) + "\r\n")),
      again("500 times \"connection\"", Get(Repeat("connection:,\r\n", 500))),
      again("chunks of a byte", chunked + Repeat("1\r\nb\r\n", 4000) + "0\r\n\r\n"),
      again("sizes of chunks with 1,000 zeros",
            chunked + Repeat(std::string(1000, '0') + "1\r\nb\r\n", 4000) + "0\r\n\r\n"),
      again("an extension to each chunk of a byte", chunked + Repeat("1;e\r\nb\r\n", 3500) + "0\r\n\r\n"),
      again("1,700 trailers", chunked + "0\r\n" + Repeat("t:\r\n", 1700) + "\r\n"),
      again("bodies that wait for a 100", Put("expect: 100-continue\r\ncontent-length: 1\r\n") + "b"),
      endless("extensions without an end", chunked, "1;" + std::string(500, 'e') + "\r\nb\r\n"),
      endless("trailers without an end", chunked + "0\r\n", "t:\r\n"),
      endless("fields without an end", "GET / HTTP/1.1\r\nhost:x\r\n", "a:\r\n"),
      endless("a target without an end", "GET /", seven_kb),
      endless("chunks of a byte without an end", chunked, "1\r\nb\r\n"),
      then_gone("half a head", Get(cookie).substr(0, 200)),
      then_gone("half a body", Put("content-length: 4000\r\n") + std::string(2000, 'b')),
      then_gone("a length that is not a number", Put("content-length: x\r\n")),
      then_gone("a hello of TLS", "\x16\x03\x01\x02" + std::string(513, 'h')),
  };
}

double CpuMs() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_nsec) / 1e6;
}

// Milliseconds of CPU a megabyte, of servers that `make` makes for a connection each. Each hears `hello` first.
template <class MakeServer>
double Measure(const Attack& attack, const std::string& hello, const MakeServer& make) {
  size_t received = 0;
  double cpu = 0;
  while (received < kBytes) {
    uint32_t stream = 1;
    std::string bytes = hello + attack.begin(&stream);
    double before = CpuMs();
    const auto server = make();
    for (bool open = true; open && received < kBytes; open = open && !attack.leaves) {
      for (size_t at = 0; open && at < bytes.size(); at += kReadChunk) {
        const std::string_view piece = std::string_view(bytes).substr(at, kReadChunk);
        open = server->Receive(piece);
        received += piece.size();
      }
      cpu += CpuMs() - before;
      bytes = attack.go_on(&stream);
      before = CpuMs();
    }
  }
  return cpu * 1e6 / static_cast<double>(received);
}

using Measurement = std::function<double(const Attack&)>;

// A row for each attack that is among `names`, or for all if there are none; two columns.
void Print(const char* version, const std::vector<Attack>& attacks,
           const std::vector<std::string_view>& names, const char* left, const Measurement& measure_left,
           const char* right, const Measurement& measure_right) {
  const double left_unit = measure_left(attacks[0]), right_unit = measure_right(attacks[0]);
  std::printf("\n%-48s %8s %6s %8s %6s\n", version, left, "", right, "");
  for (const Attack& attack : attacks) {
    if (!names.empty() && std::find(names.begin(), names.end(), attack.name) == names.end()) continue;
    const double l = measure_left(attack), r = measure_right(attack);
    std::printf("%-48s %8.1f %5.1fx %8.1f %5.1fx\n", attack.name, l, l / left_unit, r, r / right_unit);
  }
}

}  // namespace
}  // namespace curtail::wire

int main(int argc, char** argv) {
  using namespace curtail::wire;
  const std::vector<std::string_view> names(argv + 1, argv + argc);
  const std::string hello =
      "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + Frame(4, 0, 0, "") + Frame(8, 0, 0, std::string("\x7f\0\0\0", 4));
  const HttpLimits gateway, admin{.max_head_bytes = 8u << 10, .max_body_bytes = 4u << 10};
  const auto http1 = [](const HttpLimits& limits) {
    return [limits](const Attack& attack) {
      return Measure(attack, "", [&] { return std::make_unique<HttpServer>(MakeHttp1Codec(limits)); });
    };
  };
  std::printf("Milliseconds of CPU a MB, and times the first row's\n");
  Print(
      "HTTP/2", Http2Attacks(), names, "gRPC",
      [&](const Attack& attack) {
        return Measure(attack, hello, [] { return std::make_unique<GrpcServer>(); });
      },
      "gateway",
      [&](const Attack& attack) {
        return Measure(attack, hello, [&] { return std::make_unique<HttpServer>(MakeHttp2Codec(gateway)); });
      });
  Print("HTTP/1.1", Http1Attacks(), names, "gateway", http1(gateway), "admin", http1(admin));
  return 0;
}
