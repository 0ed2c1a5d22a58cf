// SPDX-License-Identifier: Apache-2.0
//
// Count: the number of words of a text. Straight-line, as it waits for no other service.
#include <sstream>

#include "curtail/rpc/host.h"
#include "toy.curtail.h"

namespace curtail::toy {

struct CountService final : Count::Service {
  CountService() : Service(/*never_waits=*/true) {}
  absl::Status Number(Context&, const Words& request, Words* reply) override {
    std::istringstream in(request.text());
    for (std::string word; in >> word;) reply->set_number(reply->number() + 1);
    return absl::OkStatus();
  }
};

HostedService HostedCount() {
  return {.name = "count", .make = [](Env&) { return std::make_unique<CountService>(); }};
}

}  // namespace curtail::toy
