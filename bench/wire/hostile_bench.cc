// SPDX-License-Identifier: Apache-2.0
//
// Hostile input's cost to a server's session: CPU milliseconds for each megabyte that a peer sends, which opens the
// next connection when the last one is closed on it.
//
//   hostile_bench [NAME]...

#include <time.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "curtail/wire/session.h"

namespace curtail::wire {
namespace {

constexpr size_t kBytes = 8u << 20;

// Serves nothing: calls stay open until their request ends, which is answered with an empty message.
class Server final : public Events {
 public:
  void* OnRequest(StreamId, RequestHead&&) override { return this; }
  void OnMessage(StreamId, void*, std::string&&) override {}
  void OnRequestEnd(StreamId id, void*) override {
    session.SendMessage(id, "");
    session.EndCall(id, absl::OkStatus());
  }
  void OnCallEnd(StreamId, void*, absl::Status&&, Metadata&&) override {}
  TimePoint now() override { return Now(); }

  Session session{Role::kServer, {}, this};
};

std::string Frame(uint8_t type, uint8_t flags, uint32_t stream, std::string_view payload) {
  std::string out;
  for (const int shift : {16, 8, 0}) out += static_cast<char>(payload.size() >> shift);
  out += static_cast<char>(type);
  out += static_cast<char>(flags);
  for (const int shift : {24, 16, 8, 0}) out += static_cast<char>(stream >> shift);
  return out.append(payload);
}

std::string Length(size_t size) {
  if (size < 127) return std::string(1, static_cast<char>(size));
  std::string out(1, '\x7f');
  for (size -= 127; size >= 128; size >>= 7) out += static_cast<char>(size | 0x80);
  return out + static_cast<char>(size);
}

std::string Literal(char first, std::string_view name, std::string_view value) {
  return std::string(1, first) + Length(name.size()) + std::string(name) + Length(value.size()) +
         std::string(value);
}

// A whole request's fields; from the second call on, four of them from the table.
std::string Fields() {
  return "\x83\x86" + Literal('\x40', ":path", "/a.B/C") +
         Literal('\x40', "content-type", "application/grpc");
}
constexpr std::string_view kAgain = "\x83\x86\xbf\xbe";

// One kind of input: what comes first, and what follows again and again. `stream` is the next id.
struct Attack {
  const char* name;
  std::function<std::string(uint32_t* stream)> begin;
  std::function<std::string(uint32_t* stream)> go_on;
};

std::string Open(uint32_t* stream, int count, uint8_t flags = 4) {
  std::string out;
  for (int i = 0; i < count; ++i, *stream += 2)
    out += Frame(1, flags, *stream, *stream == 1 ? Fields() : kAgain);
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
// A block on a stream of its own.
std::function<std::string(uint32_t*)> Blocks(std::string block) {
  return [block = std::move(block)](uint32_t* stream) {
    std::string out;
    for (int i = 0; i < 100; ++i, *stream += 2) out += Frame(1, 4 | 1, *stream, block);
    return out;
  };
}

std::vector<Attack> Attacks() {
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
               Frame(1, 4, *stream, *stream == 1 ? Fields() : kAgain) + Frame(0, 1, *stream, "\0\0\0\0\0"s);
         return out;
       }},
      {"DATA of long messages", Opened(1),
       Same(Frame(0, 0, 1, "\0\0\0\x3f\xfb"s + std::string(16379, 'm')), 8)},
      {"SETTINGS, a window 2,730 times, 4,095 streams", Opened(4095),
       Same(Frame(4, 0, 0, Repeat(window1 + window2, 1365)), 8)},
      {"SETTINGS, small, 4,095 streams", Opened(4095),
       Same(Frame(4, 0, 0, window1) + Frame(4, 0, 0, window2))},
      {"SETTINGS, a table's size 2,730 times", Opened(1),
       Same(Frame(4, 0, 0, Repeat(table1 + table2, 1365)), 8)},
      {"a bad name of 4 KB by index", entry(bad, ""), Blocks("\x83\x86" + Repeat("\x0f\x2f\1v"s, 60))},
      {"a bad name of 4 KB by index, inserted", entry(bad, ""), Blocks("\x83\x86" + Repeat("\x7e\1v"s, 16))},
      {"a long name by index, inserted", entry(std::string(3900, 'a'), ""),
       Blocks("\x83\x86" + Repeat("\x7e\1v"s, 16))},
      {"1,950 commas in a -bin value", Opened(1), Blocks(Literal('\0', "x-bin", commas))},
      {"17 values of a -bin key by index", entry("x-bin", std::string(16, ',')),
       Blocks("\x83\x86\xc0\xbf\xbe"s)},
      {"31 values of a -bin key by index", entry("x-bin", std::string(30, ',')),
       Blocks("\x83\x86\xc0\xbf\xbe"s)},
      {"metadata by index", entry("a", ""), Blocks("\x83\x86\xc0\xbf" + Repeat("\xbe", 200))},
      {"long metadata by index", entry("a-name-longer-than-sso-permits", "a value longer than that as well"),
       Blocks("\x83\x86\xc0\xbf" + Repeat("\xbe", 150))},
      {"4 values of 3,900 bytes by index", entry("a", std::string(3900, 'v')),
       Blocks("\x83\x86\xc0\xbf" + Repeat("\xbe", 4))},
      {"4 values of 3,900 bytes of a -bin key by index", entry("x-bin", std::string(3900, 'A')),
       Blocks("\x83\x86\xc0\xbf" + Repeat("\xbe", 4))},
      {"16 values of a -bin key by index, in turn", entries(16, "x-bin", std::string(200, 'A')),
       Blocks("\x83\x86\xcf\xce" +
              Repeat("\xbe\xbf\xc0\xc1\xc2\xc3\xc4\xc5\xc6\xc7\xc8\xc9\xca\xcb\xcc\xcd", 4))},
      {"a content-length of 3,900 zeros by index", entry("content-length", std::string(3900, '0')),
       Blocks("\x83\x86\xc0\xbf" + Repeat("\xbe", 4))},
      {"blocks without a path", Opened(1), Blocks("\x83\x86"s)},
      {"more fields than allowed", entry("a", std::string(3000, 'v')),
       Blocks("\x83\x86\xc0\xbf" + Repeat("\xbe", 60))},
      {"HEADERS and RST_STREAM", none,
       [](uint32_t* stream) {
         std::string out;
         for (int i = 0; i < 100; ++i, *stream += 2)
           out += Frame(1, 4, *stream, *stream == 1 ? Fields() : kAgain) + Frame(3, 0, *stream, "\0\0\0\x8"s);
         return out;
       }},
      {"HEADERS, then a zero WINDOW_UPDATE", none,
       [](uint32_t* stream) {
         std::string out;
         for (int i = 0; i < 100; ++i, *stream += 2)
           out += Frame(1, 4, *stream, *stream == 1 ? Fields() : kAgain) + Frame(8, 0, *stream, "\0\0\0\0"s);
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

double CpuMs() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_nsec) / 1e6;
}

void Measure(const Attack& attack) {
  size_t received = 0;
  int connections = 0;
  double cpu = 0;
  while (received < kBytes) {
    Server server;
    ++connections;
    uint32_t stream = 1;
    std::string out;
    std::string bytes = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + Frame(4, 0, 0, "") +
                        Frame(8, 0, 0, std::string("\x7f\0\0\0", 4)) + attack.begin(&stream);
    bool open = true;
    while (open && received < kBytes) {
      const double before = CpuMs();
      open = server.session.Receive(bytes).ok();
      out.clear();
      while (server.session.Pull(&out)) out.clear();
      cpu += CpuMs() - before;
      received += bytes.size();
      bytes = attack.go_on(&stream);
    }
  }
  std::printf("%-48s %8.1f ms/MB  %6d connections\n", attack.name, cpu * 1e6 / static_cast<double>(received),
              connections);
}

}  // namespace
}  // namespace curtail::wire

int main(int argc, char** argv) {
  const std::vector<std::string_view> names(argv + 1, argv + argc);
  for (const curtail::wire::Attack& attack : curtail::wire::Attacks()) {
    if (names.empty() || std::find(names.begin(), names.end(), attack.name) != names.end())
      curtail::wire::Measure(attack);
  }
  return 0;
}
