// SPDX-License-Identifier: Apache-2.0
//
// Any bytes at all against the server's end of HTTP/1.1 and of HTTP/2, and what is taken from them. The first byte says in
// which pieces the bytes arrive and when requests are answered, at once or in parts. Properties: no more is held than the
// limits allow, and every request that is taken can be answered.
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "curtail/gateway/grpc_web.h"
#include "curtail/gateway/http_codec.h"
#include "curtail/gateway/internal/request_rules.h"
#include "curtail/gateway/path_template.h"
#include "curtail/gateway/static_files.h"

namespace curtail::gateway {
namespace {

constexpr HttpLimits kLimits{
    .max_head_bytes = 1024, .max_body_bytes = 4096, .max_streams = 4, .max_partial_bytes = 8192};

void Require(bool holds) {
  if (!holds) std::abort();
}

void Run(std::string_view prefix, std::string_view bytes, size_t piece, size_t hold_back) {
  static const auto files = StaticFiles::Make({{"index.html", "<p>"}});
  const auto codec = MakeAnyHttpCodec(kLimits);
  std::vector<HttpRequest> requests;
  std::vector<int32_t> open;  // answers that come in parts
  std::string out;
  const auto go_on = [&](bool last) {
    for (const int32_t stream : open) {
      if (stream % 8 == 5 && !codec->Abort(stream)) return false;
      codec->AddBody(stream, std::string(30, 'p'), last);
    }
    if (last) open.clear();
    for (const int32_t stream : codec->TakeGivenUp()) codec->AddBody(stream, "late", /*last=*/true);
    return true;
  };
  const auto answer = [&](size_t keep) {
    while (requests.size() > keep) {
      const HttpRequest& request = requests.back();
      WebMessage(WebForm::kText, request.body).IgnoreError();
      const auto [path, query] = internal::SplitTarget(request.target);
      Require(path.size() + query.size() <= request.target.size() + 1);
      StaticFiles::Answer(*files->Find("/"), request).IgnoreError();
      const bool more = request.body.size() % 2 == 1;
      codec->Reply(request.stream,
                   {200, {{"x-verb", "v"}}, std::string(request.body.size() % 100, 'r'), more});
      if (more) open.push_back(request.stream);
      requests.pop_back();
    }
  };
  if (!prefix.empty() && !codec->Receive(prefix, &requests).ok()) return;
  while (!bytes.empty() && !codec->Finished()) {
    if (!go_on(!codec->WantsInput() || piece % 3 == 0)) return;
    if (!codec->WantsInput()) answer(0);
    if (!codec->WantsInput() && !open.empty() && !go_on(/*last=*/true)) return;
    if (!codec->Receive(bytes.substr(0, piece), &requests).ok()) return;
    bytes.remove_prefix(std::min(piece, bytes.size()));
    out.clear();
    codec->Pull(&out, 1 << 16);
    answer(hold_back);
    Require(codec->held_bytes() <= kLimits.max_partial_bytes + kLimits.max_head_bytes + piece + 4096);
  }
  answer(0);
  if (!go_on(/*last=*/true)) return;
  Require(codec->in_flight() == 0);
  out.clear();
  codec->Pull(&out, 1 << 16);
}

}  // namespace
}  // namespace curtail::gateway

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace curtail::gateway;
  if (size < 2) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const size_t piece = (data[0] & 0x3f) + 1;
  Run({}, bytes, piece, data[0] >> 6);
  Run("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", bytes, piece, data[0] >> 6);
  if (const auto pattern = PathTemplate::Parse(bytes); pattern.ok()) {
    std::vector<Binding> bindings;
    pattern->Match(bytes, &bindings);
  }
  return 0;
}
