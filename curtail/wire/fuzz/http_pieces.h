// SPDX-License-Identifier: Apache-2.0
//
// http_pieces.h - what the clients of fuzzed HTTP servers send: pieces of requests in an order that the input chooses, and
// bytes of the input between them.
#pragma once

#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>

#include "curtail/base/strings.h"
#include "curtail/wire/fuzz/fuzzing.h"

namespace curtail::wire::fuzz {

// Heads, bodies, chunks with extensions, trailers; whole requests one after the other; and what is none of these.
inline constexpr std::string_view kHttp1Pieces[] = {
    "GET / HTTP/1.1\r\nhost: x\r\n\r\n",
    "GET /a HTTP/1.1\r\nhost: x\r\n\r\nHEAD /b HTTP/1.1\r\nhost: x\r\n\r\nGET http://x/c HTTP/1.1\r\nhost: "
    "y\r\n\r\n",
    "GET / HTTP/1.0\r\n\r\n",
    "GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n",
    "POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\n\r\n",
    "POST / HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: 5\r\n\r\n",
    "POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n",
    "POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\nexpect: 100-continue\r\n\r\n",
    "POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: xchunked\r\ncontent-length: 9\r\n\r\n",
    "hello",
    "5\r\nhello\r\n",
    "5;name=\"value\";other\r\nhello\r\n",
    "ffffffffffffffff\r\n",
    "0\r\n\r\n",
    "0;last\r\nx: y\r\nset-cookie: z\r\n\r\n",
    "0\r\nx: ",
    "x: y\r\n",
    " folded\r\n",
    "\r\n",
    "GET / HT",
};

class Pieces {
 public:
  Pieces(Input& input, bool http2) : input_(input), http2_(http2) {}

  bool http2() const { return http2_; }
  std::string Next() {
    const uint8_t choice = input_.Byte();
    if (choice < 64) return std::string(input_.Bytes(choice));
    if (!http2_) return std::string(kHttp1Pieces[choice % std::size(kHttp1Pieces)]);
    return NextFrame(choice);
  }

 private:
  static std::string Frame(char type, char flags, uint32_t stream, std::string_view payload) {
    std::string frame = {0, static_cast<char>(payload.size() >> 8), static_cast<char>(payload.size()), type,
                         flags};
    for (const int shift : {24, 16, 8, 0}) frame += static_cast<char>(stream >> shift);
    return frame.append(payload);
  }
  std::string NextFrame(uint8_t choice) {
    using std::string_view_literals::operator""sv;
    constexpr std::string_view kGet = "\x82\x86\x84\x41\x01x", kPost = "\x83\x86\x84\x41\x01x";
    const uint32_t some = 1 + 2 * (input_.Byte() % 8);
    switch (choice % 14) {
      case 0:
        return Frame(1, 5, last_ += 2, kGet);
      case 1:
        return Frame(1, 4, last_ += 2, kPost);
      case 2:
        last_ += 2;  // and gives it up
        return Frame(1, 5, last_, kGet) + Frame(3, 0, last_, "\0\0\0\x8"sv);
      case 3:
        return Frame(1, 0, last_ += 2, kPost);
      case 4:
        return Frame(9, 4, last_, {});
      case 5:
        return Frame(0, 0, last_, input_.Bytes(some));
      case 6:
        return Frame(0, 1, last_, std::string(20 * some, 'd'));
      case 7:
        return Frame(1, 5, last_, "\x40\x01t\x01r");  // trailers
      case 8:
        return Frame(3, 0, some, "\0\0\0\x8"sv);
      case 9:
        return Frame(4, 0, 0, choice % 2 == 0 ? "\0\4\0\0\0\0"sv : "\0\4\0\0\xff\xff"sv);
      case 10:
        return Frame(8, 0, choice % 2 == 0 ? some : 0, "\0\0\x10\0"sv);
      case 11:
        return Frame(6, 0, 0, "12345678");
      case 12:
        return Frame(7, 0, 0, "\0\0\0\0\0\0\0\0"sv);
      default:
        return Frame(static_cast<char>(some), static_cast<char>(choice), last_, input_.Bytes(some));
    }
  }

  Input& input_;
  const bool http2_;
  uint32_t last_ = static_cast<uint32_t>(-1);  // the stream that was opened last
};

}  // namespace curtail::wire::fuzz
