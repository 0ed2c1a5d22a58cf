// SPDX-License-Identifier: Apache-2.0
//
// mid_blocking.cc - ten blocking system calls a request, one request at a time.

#include "mid.h"

namespace curtail::bench {
namespace {

class BlockingMid final : public Mid {
 public:
  explicit BlockingMid(bool last_first) : last_first_(last_first) {}

  absl::Status Serve(const Sockets& sockets, Kernel kernel) override {
    while (true) {
      if (absl::Status served = ServeOne(sockets, kernel); !served.ok()) return served;
    }
  }

 private:
  absl::Status ServeOne(const Sockets& sockets, Kernel& kernel) const {
    Message message;
    absl::Status status = kernel.RecvAll(sockets[kCaller], &message, sizeof(message));
    for (size_t i = 0; i < kLeaves && status.ok(); ++i)
      status = kernel.SendAll(sockets[i], &message, sizeof(message));
    for (size_t i = 0; i < kLeaves && status.ok(); ++i) {
      Message reply;
      status = kernel.RecvAll(sockets[last_first_ ? kLeaves - 1 - i : i], &reply, sizeof(reply));
      if (status.ok() && reply.id != message.id) return absl::DataLossError("a reply to no request");
    }
    if (!status.ok()) return status;
    message.replies = kLeaves;
    return kernel.SendAll(sockets[kCaller], &message, sizeof(message));
  }

  const bool last_first_;
};

}  // namespace

std::unique_ptr<Mid> MakeBlockingMid(bool last_first) { return std::make_unique<BlockingMid>(last_first); }

}  // namespace curtail::bench
