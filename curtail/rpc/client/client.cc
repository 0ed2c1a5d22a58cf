// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <memory>
#include <utility>

#include "curtail/rpc/channel.h"
#include "curtail/rpc/client/channel_impl.h"

namespace curtail {

Client::Client(ClientOptions options) : impl_(std::make_unique<Impl>(options)) {
  for (int i = 0; i < std::max(1, options.lanes); ++i) impl_->lanes.push_back(std::make_unique<Lane>());
}

Client::~Client() = default;

Lane& Client::lane(size_t index) { return *impl_->lanes[index]; }
const ClientOptions& Client::options() const { return impl_->options; }
internal::HeldMessages& Client::held_messages() { return impl_->held_messages; }
size_t Client::lane_count() const { return impl_->lanes.size(); }
void Client::Wake() { impl_->lanes[0]->poller()->Wake(); }

}  // namespace curtail
