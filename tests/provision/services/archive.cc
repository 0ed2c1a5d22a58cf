// SPDX-License-Identifier: Apache-2.0
//
// Archive: computes for a while, so that little CPU time is too little.
#include "curtail/base/clock.h"
#include "curtail/rpc/host.h"
#include "desk.curtail.h"

namespace curtail::desk {

struct ArchiveService final : Archive::Service {
  ArchiveService() : Service(/*never_waits=*/true) {}
  absl::Status File(Context&, const Form& request, Form* reply) override {
    uint64_t hash = 14695981039346656037u;  // FNV-1a, over and over
    for (int i = 0; i < 300'000; ++i) hash = (hash ^ static_cast<uint64_t>(i)) * 1099511628211u;
    reply->set_text(request.text() + " " + std::to_string(hash));
    return absl::OkStatus();
  }
};

HostedService HostedArchive() {
  return {.name = "archive", .make = [](Env&) { return std::make_unique<ArchiveService>(); }};
}

}  // namespace curtail::desk
