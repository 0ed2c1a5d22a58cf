// SPDX-License-Identifier: Apache-2.0
//
// Text: the text of a review.
#include "apps/media/data.h"
#include "curtail/base/strings.h"

namespace curtail::media {

constexpr size_t kMostTextBytes = 4096;

struct TextService final : Text::CoroutineService {
  explicit TextService(Env& e) : env(e) {}

  // Messages carry no text that is not UTF-8.
  Coroutine Upload(Context& ctx, const UploadRequest& request, Composed* reply) override {
    if (request.text().empty() || request.text().size() > kMostTextBytes)
      co_return absl::InvalidArgumentError(Join("a review has 1 to ", kMostTextBytes, " bytes of text"));
    Part part;
    part.set_text(request.text());
    co_return co_await PutPart(ctx, compose, request.request(), std::move(part), reply);
  }

  std::vector<DeclaredPath> Paths() const override { return {{"Upload", {compose}}}; }

  Env& env;
  const ComposeReview::Stub compose = env.Stub<ComposeReview>("compose-review");
};

HostedService HostedText() {
  return {.name = "text", .make = [](Env& env) { return std::make_unique<TextService>(env); }};
}

}  // namespace curtail::media
