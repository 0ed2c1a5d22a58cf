// SPDX-License-Identifier: Apache-2.0
//
// DESIGN: one request at a time: while one is in flight, or a client lags with its answers, what the client sends behind it
// stays in the socket, or in in_.
#include <array>
#include <charconv>

#include "curtail/base/strings.h"
#include "curtail/wire/http/http1_reader.h"
#include "curtail/wire/http/http_codec.h"

namespace curtail::wire {
namespace {

// Bytes of answers that the client has not taken, beyond which it is not read.
constexpr size_t kMostUnsent = 64u << 10;
// Memory that is kept without a use.
constexpr size_t kKept = 4u << 10;

// "OK" of 200; empty of a status that is not in the table.
std::string_view ReasonOf(int status) {
  static constexpr std::pair<int, std::string_view> kReasons[] = {{200, "OK"},
                                                                  {204, "No Content"},
                                                                  {206, "Partial Content"},
                                                                  {304, "Not Modified"},
                                                                  {400, "Bad Request"},
                                                                  {401, "Unauthorized"},
                                                                  {403, "Forbidden"},
                                                                  {404, "Not Found"},
                                                                  {405, "Method Not Allowed"},
                                                                  {409, "Conflict"},
                                                                  {410, "Gone"},
                                                                  {413, "Content Too Large"},
                                                                  {416, "Range Not Satisfiable"},
                                                                  {421, "Misdirected Request"},
                                                                  {429, "Too Many Requests"},
                                                                  {431, "Request Header Fields Too Large"},
                                                                  {499, "Client Closed Request"},
                                                                  {500, "Internal Server Error"},
                                                                  {501, "Not Implemented"},
                                                                  {503, "Service Unavailable"},
                                                                  {504, "Gateway Timeout"}};
  for (const auto& [number, reason] : kReasons) {
    if (number == status) return reason;
  }
  return {};
}

// Gives back the memory of the first `used` bytes, in steps that move each byte a few times at most.
void DropFront(std::string* bytes, size_t* used) {
  if (*used < bytes->size() - *used) return;
  bytes->erase(0, std::exchange(*used, 0));
  if (bytes->capacity() > kKept && bytes->size() < bytes->capacity() / 4) bytes->shrink_to_fit();
}

class Http1Codec final : public HttpServerCodec {
 public:
  explicit Http1Codec(const HttpLimits& limits)
      : reader_(curtail::internal::HttpRequestLimits{limits.max_head_bytes, limits.max_body_bytes}) {}

  absl::Status Receive(std::string_view bytes, std::vector<HttpRequest>* requests) override;
  void Reply(int32_t stream, HttpReply reply) override;
  void AddBody(int32_t stream, std::string_view bytes, bool last) override;
  bool Abort(int32_t) override { return false; }
  size_t unsent(int32_t stream) const override { return stream == stream_ ? owed_bytes() : 0; }
  std::vector<int32_t> TakeGivenUp() override { return {}; }  // the connection ends with the request
  void Pull(std::string* out, size_t limit) override;
  void LastCall() override { last_call_ = true; }  // the next head says so, and its answer is the last
  void Drain() override {
    keep_alive_ = false;
    closing_ |= !busy_;
  }
  bool WantsInput() const override { return !busy_ && !closing_ && owed_bytes() <= kMostUnsent; }
  bool RefuseBodies(bool on) override { return !on; }  // no input has an effect on what is to leave
  bool Finished() const override { return closing_ && !busy_; }
  size_t in_flight() const override { return busy_ ? 1 : 0; }
  bool in_request() const override { return WantsInput() && (!in_.empty() || reader_.begun()); }
  size_t owed_bytes() const override { return out_.size() - pulled_; }
  uint64_t refused() const override { return refused_; }
  size_t held_bytes() const override { return in_.size() - read_ + owed_bytes() + reader_.held(); }

 private:
  // Takes requests from the front of `bytes`.
  void Parse(std::string_view* bytes, std::vector<HttpRequest>* requests);
  // The request is whole.
  void Take(std::vector<HttpRequest>* requests);
  // Answers a request that cannot be read; the connection ends with it.
  void Refuse(const absl::Status& why);
  // The answer is whole.
  void End() {
    busy_ = adding_ = false;
    closing_ = !keep_alive_;
  }

  curtail::internal::Http1Reader reader_;
  std::string in_;          // what the reader has not taken, behind the first
  size_t read_ = 0;         // ... bytes
  std::string out_;         // answers, of which Pull() has taken the first
  size_t pulled_ = 0;       // ... bytes
  int32_t stream_ = 0;      // of the last request
  bool busy_ = false;       // it awaits its answer
  bool adding_ = false;     // ... of which AddBody() adds the rest
  bool chunked_ = false;    // ... in chunks; or it ends with the connection
  bool old_ = false;        // it was of HTTP/1.0
  bool head_only_ = false;  // it was a HEAD
  bool keep_alive_ = true;
  bool last_call_ = false;
  bool closing_ = false;
  bool continued_ = false;  // the client was told to go on
  uint64_t refused_ = 0;
};

absl::Status Http1Codec::Receive(std::string_view bytes, std::vector<HttpRequest>* requests) {
  const bool kept = read_ < in_.size();
  if (kept) {
    in_.append(bytes);
    bytes = std::string_view(in_).substr(read_);
  }
  Parse(&bytes, requests);
  if (closing_) bytes = {};  // behind the last request
  if (!kept) {
    in_.assign(bytes);
    read_ = 0;
  } else {
    read_ = in_.size() - bytes.size();
  }
  DropFront(&in_, &read_);
  return absl::OkStatus();
}

void Http1Codec::Parse(std::string_view* bytes, std::vector<HttpRequest>* requests) {
  while (WantsInput() && !bytes->empty()) {
    if (const absl::Status status = reader_.Read(bytes); !status.ok()) return Refuse(status);
    if (reader_.done()) Take(requests);
  }
  if (busy_ || closing_ || !reader_.expects() || std::exchange(continued_, true)) return;
  out_ += "HTTP/1.1 100 Continue\r\n\r\n";
}

void Http1Codec::Take(std::vector<HttpRequest>* requests) {
  busy_ = true;
  continued_ = false;
  head_only_ = reader_.verb() == "HEAD";
  old_ = reader_.http10();
  keep_alive_ = keep_alive_ && reader_.keep_alive();
  HttpRequest& request = requests->emplace_back();
  request.stream = ++stream_;
  request.verb = std::move(reader_.verb());
  request.target = std::move(reader_.target());
  request.headers = std::move(reader_.headers());
  request.body = std::move(reader_.body());
  reader_.Begin(/*head_only=*/false);
}

void Http1Codec::Refuse(const absl::Status& why) {
  HttpReply reply;
  reply.status = reader_.refusal();
  if (reply.status != 400) ++refused_;
  reply.headers.emplace_back("content-type", "text/plain");
  reply.body = Join(Message(why), "\n");
  ++stream_;
  busy_ = true;
  keep_alive_ = false;
  head_only_ = false;
  Reply(stream_, std::move(reply));
}

void Http1Codec::Pull(std::string* out, size_t limit) {
  const size_t take = std::min(owed_bytes(), limit - std::min(limit, out->size()));
  if (take == out_.size() && out->empty()) {
    *out = std::exchange(out_, {});
  } else {
    out->append(out_, pulled_, take);
    pulled_ += take;
    DropFront(&out_, &pulled_);
  }
}

void Http1Codec::Reply(int32_t stream, HttpReply reply) {
  if (!busy_ || adding_ || stream != stream_) return;
  chunked_ = reply.more && !old_;
  keep_alive_ = keep_alive_ && !last_call_ && (chunked_ || !reply.more);
  const bool bodiless = reply.status == 204 || reply.status == 304;
  out_ += Join("HTTP/1.1 ", reply.status, " ", ReasonOf(reply.status), "\r\n");
  for (const auto& [name, value] : reply.headers) out_ += Join(name, ": ", value, "\r\n");
  if (!reply.more && !bodiless) out_ += Join("content-length: ", reply.body.size(), "\r\n");
  if (chunked_) out_ += "transfer-encoding: chunked\r\n";
  if (!keep_alive_) out_ += "connection: close\r\n";
  out_ += "\r\n";
  if (reply.more) {
    adding_ = true;
    return AddBody(stream, reply.body, /*last=*/false);
  }
  if (!head_only_ && !bodiless) out_ += reply.body;
  End();
}

void Http1Codec::AddBody(int32_t stream, std::string_view bytes, bool last) {
  if (!adding_ || stream != stream_) return;
  if (!bytes.empty() && !head_only_) {
    std::array<char, 16> size;
    const auto end = std::to_chars(size.data(), size.data() + size.size(), bytes.size(), 16).ptr;
    if (chunked_) out_.append(size.data(), end).append("\r\n");
    out_ += bytes;
    if (chunked_) out_ += "\r\n";
  }
  if (!last) return;
  if (chunked_ && !head_only_) out_ += "0\r\n\r\n";
  End();
}

}  // namespace

std::unique_ptr<HttpServerCodec> MakeHttp1Codec(const HttpLimits& limits) {
  return std::make_unique<Http1Codec>(limits);
}

}  // namespace curtail::wire
