// @Service@: answers for its own part.
#include "curtail/rpc/host.h"
#include "@app@.curtail.h"

namespace @app@ {

class @Service@Service final : public @Service@::Service {
  absl::Status Look(curtail::Context&, const Question& request, Answer* reply) override {
    if (request.text().empty()) return absl::InvalidArgumentError("text is empty");
    reply->add_parts("@service@: " + request.text());
    return absl::OkStatus();
  }
};

curtail::HostedService Hosted@Service@() {
  return {.name = "@service@", .make = [](curtail::Env&) { return std::make_unique<@Service@Service>(); }};
}

}  // namespace @app@
