// SPDX-License-Identifier: Apache-2.0
#include "apps/fanout/workload.h"

#include <memory>
#include <string>

#include "fanout.curtail.h"
#include "fanout.pb.h"

namespace curtail::fanout {

constexpr size_t kPayloadBytes = 64;

apps::AppRequests Requests() {
  return {.service = std::string(Fanout::kServiceName),
          .options = {},
          .make = [](const apps::RequestOptions&) -> absl::StatusOr<std::unique_ptr<Workload>> {
            Blob blob;
            blob.set_payload(std::string(kPayloadBytes, '\0'));
            return std::make_unique<FixedWorkload>(std::string(Fanout::kQuery.path),
                                                   blob.SerializeAsString());
          }};
}

}  // namespace curtail::fanout
