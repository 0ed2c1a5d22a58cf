// @Entry@: the service that clients call.
#include "curtail/rpc/host.h"
#include "curtail/rpc/when_all.h"
#include "@app@.curtail.h"

namespace @app@ {

class @Entry@Service final : public @Entry@::Service {
 public:
  explicit @Entry@Service(curtail::Env& env) : @members_made@ {}

  absl::Status Ask(curtail::Context& ctx, const Question& request, Answer* reply) override {
    const auto [@replies@] = curtail::AwaitAll(ctx, @calls@);
    for (const auto* answer : {@reply_addresses@}) {
      if (!answer->ok()) return answer->status();
      for (const std::string& part : (*answer)->parts()) reply->add_parts(part);
    }
    return absl::OkStatus();
  }

 private:
@members@};

curtail::HostedService Hosted@Entry@() {
  return {.name = "@entry@", .make = [](curtail::Env& env) { return std::make_unique<@Entry@Service>(env); }};
}

}  // namespace @app@
