// SPDX-License-Identifier: Apache-2.0
//
// Text: refuses an empty text, and has its words counted.
#include "curtail/rpc/host.h"
#include "curtail/rpc/when_all.h"
#include "toy.curtail.h"

namespace curtail::toy {

struct TextService final : Text::CoroutineService {
  explicit TextService(Count::Stub stub) : count(stub) {}
  Coroutine Process(Context& ctx, const Words& request, Words* reply) override {
    if (request.text().empty()) co_return absl::InvalidArgumentError("text is empty");
    auto [counted] = co_await WhenAll(ctx, Ask(count, Count::kNumber, request));
    if (!counted.ok()) co_return counted.status();
    reply->set_text(request.text());
    reply->set_number(counted->number());
    co_return absl::OkStatus();
  }
  const Count::Stub count;
};

// [hosted]
HostedService HostedText() {
  return {.name = "text",
          .make = [](Env& env) { return std::make_unique<TextService>(env.Stub<Count>("count")); }};
}
// [/hosted]

}  // namespace curtail::toy
