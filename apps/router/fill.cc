// SPDX-License-Identifier: Apache-2.0
//
// Sets the records of a workload, a window of them at once, from one thread.
#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "apps/kit/parallel.h"
#include "apps/router/fill.h"
#include "curtail/base/strings.h"
#include "curtail/rpc/channel.h"
#include "router.curtail.h"
#include "router.pb.h"

namespace curtail::router {
namespace {

// A Filler is for one thread.
class Filler {
 public:
  Filler(const FillOptions& options, Mix mix, const ChannelOptions& channel)
      : options_(options),
        mix_(std::move(mix)),
        timeout_(std::chrono::duration_cast<Nanos>(std::chrono::duration<double>(options.timeout_s))),
        channel_(&client_, options.target.address, channel),
        progress_("setting records", mix_.records, options.quiet, "records") {}

  absl::Status Run() {
    std::vector<Slot> slots(std::min(static_cast<uint64_t>(options_.in_flight), mix_.records));
    for (Slot& slot : slots) slot.filler = this;
    for (Slot& slot : slots) Send(&slot);
    while (in_flight_ > 0) client_.Poll(Deadline::In(timeout_));
    return failure_;
  }

 private:
  struct Slot final : Completion {
    void Done(absl::Status&& status, std::string&& reply) override {
      filler->Ended(this, std::move(status), reply);
    }
    Filler* filler = nullptr;
    uint64_t record = 0;
  };

  void Send(Slot* slot) {
    if (next_ == mix_.records || !failure_.ok()) return;
    slot->record = next_++;
    SetRequest request;
    request.set_key(KeyOf(mix_, slot->record));
    request.set_value(ValueOf(request.key(), 0, mix_.value_bytes()));
    ++in_flight_;
    channel_.Start(Router::kSet.path, Deadline::In(timeout_), Metadata(), request.SerializeAsString(), slot);
  }

  void Ended(Slot* slot, absl::Status&& status, const std::string& reply) {
    --in_flight_;
    SetReply parsed;
    if (status.ok() && !parsed.ParseFromString(reply))
      status = absl::InternalError("the reply is not a SetReply");
    if (status.ok() && parsed.taken() < parsed.replicas()) {
      status = absl::UnavailableError(
          Join("only ", parsed.taken(), " of ", parsed.replicas(), " replicas took it"));
    }
    if (!status.ok() && failure_.ok()) {
      failure_ = absl::Status(status.code(), Join("record ", slot->record, " (", KeyOf(mix_, slot->record),
                                                  ") at ", options_.target.address, ": ", Message(status)));
    }
    progress_.Add(1);
    Send(slot);
  }

  const FillOptions& options_;
  const Mix mix_;
  const Nanos timeout_;
  Client client_;
  Channel channel_;
  apps::Progress progress_;
  uint64_t next_ = 0;
  uint64_t in_flight_ = 0;
  absl::Status failure_;
};

}  // namespace

absl::Status Fill(const FillOptions& options) {
  absl::StatusOr<Mix> mix = MixOf(options.workload);
  if (!mix.ok()) return mix.status();
  if (options.in_flight == 0) return absl::InvalidArgumentError("no set may be in flight; want 1 or more");
  const absl::StatusOr<ChannelOptions> channel = apps::ChannelOptionsOf(options.target);
  if (!channel.ok()) return channel.status();
  return Filler(options, *std::move(mix), *channel).Run();
}

}  // namespace curtail::router
