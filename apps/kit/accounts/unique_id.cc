// SPDX-License-Identifier: Apache-2.0
//
// Unique ids, in the form of id_source.h. They ascend at one machine, and across
// machines as far as the clocks agree. Twitter's Snowflake has the same form.
#include <chrono>

#include "apps/kit/accounts/hosted.h"
#include "apps/kit/accounts/id_source.h"
#include "apps/kit/data/data.h"
#include "curtail/rpc/host.h"

namespace curtail::apps {
namespace {

struct UniqueIdService final : UniqueId::CoroutineService {
  UniqueIdService(SqlDatabase* db, uint64_t machine)
      : source(db, machine, [] {
          const auto now = std::chrono::system_clock::now().time_since_epoch();
          return int64_t{std::chrono::duration_cast<std::chrono::milliseconds>(now).count()};
        }) {}

  Coroutine Next(Context& ctx, const IdCount& request, Ids* reply) override {
    return source.Next(ctx, request.count(), reply->mutable_ids());
  }

  IdSource source;
};

}  // namespace

std::unique_ptr<UniqueId::CoroutineService> MakeUniqueId(SqlDatabase* db, uint64_t machine) {
  return std::make_unique<UniqueIdService>(db, machine);
}

HostedService HostedUniqueId(const std::string& application, Beside<UniqueId> beside) {
  struct Options {
    DataOptions data;
    uint32_t machine = 0;
  };
  auto options = std::make_shared<Options>();
  options->data.application = application;
  return {.name = "unique-id",
          .flags =
              [options](Flags& flags) {
                AddDataFlags(flags, &options->data);
                flags.Add(
                    "--machine", &options->machine,
                    "unique-id: the first instance's number; another one for each that has its own --data",
                    {0, 1023});
              },
          .make = [options, beside](Env& env) -> MadeService {
            const uint64_t number = options->machine + env.shard().index;
            if (number >= 1u << kMachineBits) return absl::InvalidArgumentError("--machine: beyond 1023");
            auto db = OpenData(env, options->data, "unique-id", {kIdSchema});
            if (!db.ok()) return db.status();
            auto made = MakeUniqueId(*db, number);
            if (beside) env.AlsoServe(beside(env, *made));
            return made;
          }};
}

}  // namespace curtail::apps
