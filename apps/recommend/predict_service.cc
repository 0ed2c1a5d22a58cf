// SPDX-License-Identifier: Apache-2.0
#include "apps/recommend/predict_service.h"

#include <string>
#include <vector>

#include "curtail/rpc/coroutine.h"
#include "recommend.curtail.h"

namespace curtail::recommend {
namespace {

class PredictService final : public Recommend::CoroutineService {
 public:
  explicit PredictService(const PredictPlanner& planner) : planner_(planner) {}

  Coroutine Predict(Context& ctx, const PredictRequest& request, PredictReply* reply) override {
    ctx.ShortenDeadline(planner_.WaitUntil(request, ctx.deadline()));
    const LeafRequest ask = planner_.Ask(request);
    const auto replies = co_await broadcast(ctx, planner_.leaves(), Leaf::kPredict, ask);
    co_return planner_.Merge(request, replies, reply);
  }
  std::vector<DeclaredPath> Paths() const override { return {{"Predict", {Leaf::kServiceName}}}; }

 private:
  const PredictPlanner& planner_;
};

}  // namespace

std::unique_ptr<Service> MakePredictService(const PredictPlanner& planner) {
  return std::make_unique<PredictService>(planner);
}

HostedService HostedMidTier() {
  auto leaf_timeout_ms = std::make_shared<double>(1000);
  return {
      .name = "mid-tier",
      .flags =
          [leaf_timeout_ms](Flags& flags) {
            flags.Add("--leaf-timeout", leaf_timeout_ms.get(), "mid-tier: ms a leaf may take", {0.1, 3.6e6});
          },
      .make = [leaf_timeout_ms](Env& env) -> MadeService {
        return MakePredictService(
            env.Keep(std::make_unique<PredictPlanner>(env.Channels("leaf"), FromMillis(*leaf_timeout_ms))));
      }};
}

}  // namespace curtail::recommend
