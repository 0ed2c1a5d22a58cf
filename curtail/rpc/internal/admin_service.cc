// SPDX-License-Identifier: Apache-2.0
#include "curtail/rpc/internal/builtin_services.h"
#include "curtail/rpc/internal/message_bytes.h"
#include "curtail/rpc/internal/server_core.h"

namespace curtail::internal {
namespace {

class AdminService final : public Service {
 public:
  explicit AdminService(ServerCore* core) : core_(core) {}

  std::string_view FullName() const override { return "curtail.admin.v1.Admin"; }

  std::vector<MethodHandler> Handlers() override {
    return {{.name = "Switch",
             .handler = [this](Context&, std::string_view request,
                               std::string* reply) { return Switch(request, reply); }},
            {.name = "GetConfig", .handler = [this](Context&, std::string_view, std::string* reply) {
               MessageWriter out;
               out.Bytes(1, core_->executor().config().ToString());
               *reply = out.Take();
               return absl::OkStatus();
             }}};
  }

 private:
  absl::Status Switch(std::string_view request, std::string* reply) {
    std::string text;
    if (!ForEachField(request, [&](int field, std::string_view bytes, uint64_t) {
          if (field == 1) text = bytes;
        })) {
      return absl::InternalError("request is no valid curtail.admin.v1.SwitchRequest");
    }
    absl::StatusOr<Config> config = Config::Parse(text);
    if (!config.ok()) return config.status();
    const std::string previous = core_->executor().config().ToString();
    if (absl::Status switched = core_->SwitchTo(*config); !switched.ok()) return switched;
    MessageWriter out;
    out.Bytes(1, previous);
    *reply = out.Take();
    return absl::OkStatus();
  }

  ServerCore* const core_;
};

}  // namespace

std::unique_ptr<Service> NewAdminService(ServerCore* core) { return std::make_unique<AdminService>(core); }

}  // namespace curtail::internal
