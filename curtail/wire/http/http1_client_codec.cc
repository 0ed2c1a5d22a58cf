// SPDX-License-Identifier: Apache-2.0
//
// HTTP/1.1 with connections that are kept alive, one request on a connection at a time.
#include <utility>

#include "curtail/base/strings.h"
#include "curtail/wire/http/http1_reader.h"
#include "curtail/wire/http/http_client_codec.h"

namespace curtail::internal {
namespace {

class Http1Codec final : public HttpCodec {
 public:
  explicit Http1Codec(const HttpLimits& limits) : reader_(limits) {}

  bool CanStart() const override { return exchange_ == nullptr && !spent_; }
  void Start(HttpExchange* exchange) override;
  // The reply would be taken for that of the next request.
  bool Cancel(HttpExchange*) override {
    exchange_ = nullptr;
    spent_ = true;
    return false;
  }
  absl::Status Receive(std::string_view bytes, Ended* ended) override;
  void ReceiveEnd(Ended* ended) override;
  void Pull(std::string* out, size_t) override {
    if (out->empty()) out->swap(out_);
    else out->append(std::exchange(out_, {}));
  }
  bool Finished() const override { return spent_ && exchange_ == nullptr; }
  Ended TakeAll() override {
    if (exchange_ == nullptr) return {};
    return {std::exchange(exchange_, nullptr)};
  }
  size_t held_bytes() const override { return exchange_ == nullptr ? 0 : reader_.held(); }

 private:
  void End(Ended* ended);

  Http1Reader reader_;
  HttpExchange* exchange_ = nullptr;  // in flight
  bool spent_ = false;
  std::string out_;
};

void Http1Codec::Start(HttpExchange* exchange) {
  exchange_ = exchange;
  const HttpEndpoint& endpoint = *exchange->endpoint;
  out_.append(endpoint.verb).append(" ").append(endpoint.path).append(" HTTP/1.1\r\n");
  if (!exchange->headers.Find("host")) out_.append("host: ").append(endpoint.authority).append("\r\n");
  for (const auto& [name, value] : exchange->headers)
    out_.append(name).append(": ").append(value).append("\r\n");
  // A server may wait for the body of these where no length says that there is none (RFC 9110, 8.6).
  const bool takes_body = endpoint.verb == "POST" || endpoint.verb == "PUT" || endpoint.verb == "PATCH";
  if (takes_body || !exchange->body.empty())
    out_.append("content-length: ").append(std::to_string(exchange->body.size())).append("\r\n");
  out_.append("\r\n").append(exchange->body);
  reader_.Begin(endpoint.verb == "HEAD");
}

absl::Status Http1Codec::Receive(std::string_view bytes, Ended* ended) {
  if (exchange_ == nullptr) {
    spent_ = true;
    return absl::UnavailableError("the server spoke without a request");
  }
  if (absl::Status status = reader_.Read(&bytes); !status.ok()) return status;
  if (!reader_.done()) return absl::OkStatus();
  spent_ = !reader_.keep_alive() || !bytes.empty();
  End(ended);
  return absl::OkStatus();
}

void Http1Codec::ReceiveEnd(Ended* ended) {
  spent_ = true;
  if (exchange_ == nullptr) return;
  reader_.End();
  if (reader_.done()) End(ended);
}

void Http1Codec::End(Ended* ended) {
  exchange_->status = reader_.status();
  exchange_->reason.swap(reader_.reason());
  exchange_->reply.swap(reader_.body());
  ended->push_back(std::exchange(exchange_, nullptr));
}

}  // namespace

std::unique_ptr<HttpCodec> MakeHttp1Codec(const HttpLimits& limits) {
  return std::make_unique<Http1Codec>(limits);
}

}  // namespace curtail::internal
