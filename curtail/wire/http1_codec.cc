// SPDX-License-Identifier: Apache-2.0
//
// DESIGN: HTTP/1.1 by Boost.Beast's parser, which knows the traps of lengths and chunks. One request at a time: while one
// is in flight, what the client sends behind it stays in the socket, or in in_.
#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <charconv>
#include <optional>

#include "curtail/base/strings.h"
#include "curtail/wire/http_codec.h"

namespace curtail::wire {
namespace {

namespace http = boost::beast::http;

class Http1Codec final : public HttpServerCodec {
 public:
  explicit Http1Codec(const HttpLimits& limits) : limits_(limits) { NewParser(); }

  absl::Status Receive(std::string_view bytes, std::vector<HttpRequest>* requests) override {
    in_.append(bytes);
    Parse(requests);
    return absl::OkStatus();
  }
  void Reply(int32_t stream, HttpReply reply) override;
  void AddBody(int32_t stream, std::string_view bytes, bool last) override;
  bool Abort(int32_t) override { return false; }
  size_t unsent(int32_t stream) const override { return stream == stream_ ? out_.size() : 0; }
  std::vector<int32_t> TakeGivenUp() override { return {}; }  // the connection ends with the request
  void Pull(std::string* out, size_t) override {
    out->append(out_);
    out_.clear();
  }
  void LastCall() override { last_call_ = true; }  // the next head says so, and its answer is the last
  void Drain() override {
    keep_alive_ = false;
    closing_ |= !busy_;
  }
  bool WantsInput() const override { return !busy_ && !closing_; }
  bool RefuseBodies(bool on) override { return !on; }  // no input has an effect on what is to leave
  bool Finished() const override { return closing_ && !busy_; }
  size_t in_flight() const override { return busy_ ? 1 : 0; }
  bool in_request() const override { return !busy_ && (!in_.empty() || parser_->got_some()); }
  size_t owed_bytes() const override { return out_.size(); }
  size_t held_bytes() const override { return in_.size() + out_.size() + parser_->get().body().size(); }

 private:
  using Parser = http::request_parser<http::string_body>;

  void NewParser() {
    parser_.emplace();
    parser_->eager(true);
    parser_->header_limit(static_cast<uint32_t>(limits_.max_head_bytes));
    parser_->body_limit(limits_.max_body_bytes);
    continued_ = false;
  }
  void Parse(std::vector<HttpRequest>* requests);
  // The request is whole.
  void Take(std::vector<HttpRequest>* requests);
  // Answers a request that cannot be read; the connection ends with it.
  void Refuse(const boost::beast::error_code& error);
  // The answer is whole.
  void End() {
    busy_ = adding_ = false;
    closing_ = !keep_alive_;
  }

  const HttpLimits limits_;
  std::optional<Parser> parser_;
  std::string in_;  // what the parser has not taken
  std::string out_;
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
};

void Http1Codec::Parse(std::vector<HttpRequest>* requests) {
  size_t taken = 0;
  while (!busy_ && !closing_ && taken < in_.size()) {
    boost::beast::error_code error;
    const size_t n = parser_->put(boost::asio::const_buffer(in_.data() + taken, in_.size() - taken), error);
    taken += n;
    if (error == http::error::need_more) break;
    if (error) {
      Refuse(error);
      break;
    }
    if (parser_->is_done()) {
      Take(requests);
    } else if (n == 0) {
      break;
    }
  }
  in_.erase(0, taken);
  if (busy_ || closing_ || continued_ || !parser_->is_header_done()) return;
  const auto expect = parser_->get().find(http::field::expect);
  if (expect == parser_->get().end()) return;
  continued_ = true;
  out_ += "HTTP/1.1 100 Continue\r\n\r\n";
}

void Http1Codec::Take(std::vector<HttpRequest>* requests) {
  auto message = parser_->release();
  NewParser();
  busy_ = true;
  head_only_ = message.method() == http::verb::head;
  old_ = message.version() < 11;
  keep_alive_ = keep_alive_ && message.keep_alive();
  HttpRequest request;
  request.stream = ++stream_;
  request.verb = std::string(message.method_string());
  request.target = std::string(message.target());
  for (const auto& field : message) {
    request.headers.Add(std::string(field.name_string()), std::string(field.value()));
  }
  request.body = std::move(message.body());
  requests->push_back(std::move(request));
}

void Http1Codec::Refuse(const boost::beast::error_code& error) {
  HttpReply reply;
  reply.status = error == http::error::body_limit ? 413 : error == http::error::header_limit ? 431 : 400;
  reply.headers.emplace_back("content-type", "text/plain");
  reply.body = Join("the request cannot be read: ", error.message(), "\n");
  ++stream_;
  busy_ = true;
  keep_alive_ = false;
  head_only_ = false;
  Reply(stream_, std::move(reply));
}

void Http1Codec::Reply(int32_t stream, HttpReply reply) {
  if (!busy_ || adding_ || stream != stream_) return;
  chunked_ = reply.more && !old_;
  keep_alive_ = keep_alive_ && !last_call_ && (chunked_ || !reply.more);
  const bool bodiless = reply.status == 204 || reply.status == 304;
  const auto reason = http::obsolete_reason(static_cast<http::status>(reply.status));
  out_ += Join("HTTP/1.1 ", reply.status, " ", std::string_view(reason.data(), reason.size()), "\r\n");
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
