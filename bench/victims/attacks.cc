// SPDX-License-Identifier: Apache-2.0
#include "bench/victims/attacks.h"

#include <cstdint>
#include <string_view>

#include "curtail/base/strings.h"
#include "curtail/wire/http/http2_frames_testing.h"
#include "curtail/wire/internal/compression.h"

namespace curtail::victims {
namespace {

using std::string_literals::operator""s;

constexpr char kReflection[] = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo";

std::string Repeat(std::string_view text, size_t times) {
  std::string out;
  out.reserve(text.size() * times);
  for (size_t i = 0; i < times; ++i) out.append(text);
  return out;
}

constexpr std::string_view kWide = {"\0\4\x7f\0\0\0", 6};  // SETTINGS: all windows as large as can be
constexpr std::string_view kClosed = {"\0\4\0\0\0\0", 6};  // streams have none

std::string Hello(std::string_view settings) {
  return "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + wire::Frame(4, 0, 0, settings) +
         wire::Frame(8, 0, 0, "\x7f\0\0\0"s);
}

std::string HeadOf(const char* path, const wire::HeaderList& more = {}) {
  wire::HeaderList fields = {{":method", "POST"},
                             {":scheme", "http"},
                             {":authority", "x"},
                             {":path", path},
                             {"content-type", "application/grpc"}};
  fields.insert(fields.end(), more.begin(), more.end());
  return wire::Block(fields);
}

// So many calls of this header block and this message.
std::string Calls(uint32_t count, const std::string& head, const std::string& framed) {
  std::string out = Hello(kWide);
  for (uint32_t stream = 1; stream < 2 * count; stream += 2)
    out += wire::Frame(1, 4, stream, head) + wire::DataOf(stream, framed, true);
  return out;
}

std::string EmptyCalls() { return Calls(40'000, HeadOf(kEcho), wire::Framed("")); }

std::string CompressedCalls(uint32_t count, const std::string& message) {
  std::string small;
  wire::internal::Compress(wire::Encoding::kGzip, message, &small);
  return Calls(count, HeadOf(kEcho, {{"grpc-encoding", "gzip"}}), wire::Framed(small, 1));
}

// Not a message: the server inflates it and answers with an error.
std::string Bombs() { return CompressedCalls(200, std::string(4u << 20, '\0')); }
// Two bytes for each unknown field, an empty text. An object of it takes thirty times as many.
std::string GrowingCalls() { return CompressedCalls(100, Repeat("\x12\0"s, 16u << 20)); }
std::string ShortGrowingCalls() { return CompressedCalls(400, Repeat("\x12\0"s, 1u << 19)); }
// Texts that become an eighth, as a client's own compression makes them.
std::string CompressedTexts() {
  std::string text;
  for (uint32_t i = 0; text.size() < 64u << 10; ++i)
    text += Join("{\"id\":", i * 2'654'435'761u % 10'000, ",\"name\":\"customer\",\"city\":\"Ulm\"}\n");
  text.resize(64u << 10);
  return CompressedCalls(500, "\x0a\x80\x80\x04" + text);
}
// Blob { payload: 1 MiB }
std::string LargeCalls() { return CompressedCalls(1000, "\x0a\x80\x80\x40" + std::string(1u << 20, '\0')); }

std::string ReflectionCalls() {
  constexpr int kStreams = 100, kFrames = 5;
  const std::string ask = wire::Framed(
      "\x22\x13"
      "curtail.fanout.Leaf");  // file_containing_symbol
  std::string out = Hello(kClosed);
  for (uint32_t stream = 1; stream < 2 * kStreams; stream += 2)
    out += wire::Frame(1, 4, stream, HeadOf(kReflection));
  for (int i = 0; i < kFrames; ++i) {
    for (uint32_t stream = 1; stream < 2 * kStreams; stream += 2)
      out += wire::DataOf(stream, Repeat(ask, 16000 / ask.size()), false);
  }
  return out;
}

// Requests of some bytes with so many values of 3,900 bytes from HPACK's table.
std::string CallsByIndex(size_t values) {
  constexpr char kInserted = '\x40';
  const std::string post = "\x83\x86\1\1x";
  std::string out =
      Hello(kWide) + wire::Frame(1, 5, 1,
                                 post + wire::Literal(kInserted, ":path", kEcho) +
                                     wire::Literal(kInserted, "content-type", "application/grpc") +
                                     wire::Literal(kInserted, "a", std::string(3900, 'v')));
  for (uint32_t stream = 3; stream < 200'000; stream += 2)
    out += wire::Frame(1, 5, stream, post + "\xc0\xbf" + Repeat("\xbe", values));
  return out;
}
std::string IndexedCalls() { return CallsByIndex(4); }
std::string ShortCalls() { return CallsByIndex(0); }
std::string OnceIndexedCalls() { return CallsByIndex(1); }

std::string Get(std::string_view path) { return Join("GET ", path, " HTTP/1.1\r\nhost: localhost\r\n\r\n"); }
std::string Post(std::string_view path, std::string_view body) {
  return Join("POST ", path,
              " HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: ",
              body.size(), "\r\n\r\n", body);
}

std::string JsonCalls() { return Repeat(Post(kEcho, "{}"), 5000); }
std::string LargeJsonCalls() {
  return Repeat(Post(kEcho, Join("{\"payload\":\"", std::string(4u << 18, 'A'), "\"}")), 8);
}
std::string Trailers() {
  return "POST /config HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n0\r\n" +
         Repeat("t:\r\n", 250'000);
}
std::string Nothing() { return {}; }

}  // namespace

std::string NameOf(Port port) {
  constexpr const char* kNames[] = {"gRPC, auto", "gRPC, SIB1", "gateway", "admin", "admin; gRPC is called"};
  return kNames[static_cast<size_t>(port)];
}

std::vector<Attack> Attacks() {
  using enum Port;
  using enum Manner;
  const std::vector<Port> grpc = {kAuto, kSib1}, admin = {kAdmin, kBeside};
  return {
      {"honest: empty calls, all answers read", grpc, 1, kReads, EmptyCalls},
      {"honest: texts, gzip of 8:1", grpc, 1, kReads, CompressedTexts},
      {"calls, close, connect again", grpc, 1, kLeaves, EmptyCalls},
      {"calls, close, connect again", grpc, 4, kLeaves, EmptyCalls},
      {"gzip of 1,000:1, 4 MiB each", grpc, 4, kReads, Bombs},
      {"32 MiB of empty fields, gzip", grpc, 4, kReads, GrowingCalls},
      {"1 MiB of empty fields, gzip", grpc, 4, kReads, ShortGrowingCalls},
      {"gzip of 1,000:1, 4 MiB each", grpc, 64, kStays, Bombs},
      {"32 MiB of empty fields, gzip", grpc, 64, kStays, GrowingCalls},
      {"unread replies of 1 MiB", grpc, 4, kStays, LargeCalls},
      {"reflection, 100 unread streams", grpc, 4, kLeaves, ReflectionCalls},
      {"15.6 KB of fields by index", grpc, 4, kReads, IndexedCalls},
      {"calls of 16 bytes", grpc, 4, kReads, ShortCalls},
      {"3.9 KB of fields by index", grpc, 4, kReads, OnceIndexedCalls},
      {"honest: JSON calls, all answers read", {kGateway}, 1, kReads, JsonCalls},
      {"JSON calls, close, connect again", {kGateway}, 4, kLeaves, JsonCalls},
      {"pipelined 404s", {kGateway}, 4, kReads, [] { return Repeat(Get("/nowhere"), 10'000); }},
      {"unread answers of 1 MiB", {kGateway}, 100, kStays, LargeJsonCalls},
      {"15.6 KB of fields by index", {kGateway}, 4, kReads, IndexedCalls},
      {"silent connections", {kGateway}, 10'000, kStays, Nothing},
      {"honest: pages, all read", admin, 1, kReads, [] { return Repeat(Get("/healthz"), 1000); }},
      {"pages, close, connect again", admin, 4, kLeaves, [] { return Repeat(Get("/metrics"), 1000); }},
      {"trailers without an end", admin, 4, kReads, Trailers},
      {"silent connections", admin, 3000, kStays, Nothing},
  };
}

}  // namespace curtail::victims
