// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "curtail/wire/http/http_codec.h"

namespace curtail::wire {
namespace {

// Waits for the first bytes.
class AnyCodec final : public HttpServerCodec {
 public:
  explicit AnyCodec(const HttpLimits& limits) : limits_(limits) {}

  absl::Status Receive(std::string_view bytes, std::vector<HttpRequest>* requests) override {
    if (codec_ != nullptr) return codec_->Receive(bytes, requests);
    constexpr std::string_view kPreface = "PRI * HTTP/2.0\r\n";
    first_.append(bytes);
    const size_t known = std::min(first_.size(), kPreface.size());
    const bool like_http2 = std::string_view(first_).substr(0, known) == kPreface.substr(0, known);
    if (like_http2 && known < kPreface.size()) return absl::OkStatus();
    codec_ = like_http2 ? MakeHttp2Codec(limits_) : MakeHttp1Codec(limits_);
    if (last_call_) codec_->LastCall();
    if (draining_) codec_->Drain();
    return codec_->Receive(std::exchange(first_, {}), requests);
  }
  void Reply(int32_t stream, HttpReply reply) override { codec_->Reply(stream, std::move(reply)); }
  void AddBody(int32_t stream, std::string_view bytes, bool last) override {
    codec_->AddBody(stream, bytes, last);
  }
  bool Abort(int32_t stream) override { return codec_->Abort(stream); }
  size_t unsent(int32_t stream) const override { return codec_ == nullptr ? 0 : codec_->unsent(stream); }
  std::vector<int32_t> TakeGivenUp() override {
    return codec_ == nullptr ? std::vector<int32_t>() : codec_->TakeGivenUp();
  }
  void Pull(std::string* out, size_t limit) override {
    if (codec_ != nullptr) codec_->Pull(out, limit);
  }
  void LastCall() override {
    last_call_ = true;
    if (codec_ != nullptr) codec_->LastCall();
  }
  void Drain() override {
    draining_ = true;
    if (codec_ != nullptr) codec_->Drain();
  }
  bool WantsInput() const override { return codec_ == nullptr ? !draining_ : codec_->WantsInput(); }
  bool RefuseBodies(bool on) override { return codec_ == nullptr ? !on : codec_->RefuseBodies(on); }
  bool Finished() const override { return codec_ == nullptr ? draining_ : codec_->Finished(); }
  size_t in_flight() const override { return codec_ == nullptr ? 0 : codec_->in_flight(); }
  bool in_request() const override { return codec_ == nullptr ? !first_.empty() : codec_->in_request(); }
  size_t held_bytes() const override { return codec_ == nullptr ? first_.size() : codec_->held_bytes(); }
  size_t owed_bytes() const override { return codec_ == nullptr ? 0 : codec_->owed_bytes(); }
  uint64_t refused() const override { return codec_ == nullptr ? 0 : codec_->refused(); }

 private:
  const HttpLimits limits_;
  std::string first_;
  std::unique_ptr<HttpServerCodec> codec_;
  bool last_call_ = false;
  bool draining_ = false;
};

}  // namespace

std::unique_ptr<HttpServerCodec> MakeAnyHttpCodec(const HttpLimits& limits) {
  return std::make_unique<AnyCodec>(limits);
}

}  // namespace curtail::wire
