// SPDX-License-Identifier: Apache-2.0
#include "curtail/rpc/client/leaving_call.h"

#include <algorithm>
#include <utility>

#include "curtail/rpc/client/channel_impl.h"
#include "curtail/rpc/interceptor.h"

namespace curtail::internal {
namespace {

OutgoingCall Describe(const Channel::Impl& channel, std::string_view path, TimePoint began) {
  return {.path = path, .target = channel.target, .secure = channel.secure, .began = began};
}

}  // namespace

absl::Status LeavingCall::Before(const Channel& channel, std::string_view path, Metadata& metadata) {
  const Channel::Impl& impl = channel.impl();
  if (passed_ == 0) began_ = Now();
  const OutgoingCall call = Describe(impl, path, began_);
  uint32_t passed = 0;
  for (ClientInterceptor* interceptor : impl.options.interceptors) {
    absl::Status refused = interceptor->Before(call, metadata);
    // One that let an earlier attempt pass is owed the end, too.
    passed_ = std::max(passed_, passed + refused.ok());
    if (!refused.ok()) return refused;
    ++passed;
  }
  return absl::OkStatus();
}

void LeavingCall::After(const Channel& channel, std::string_view path, const absl::Status& status) {
  const Channel::Impl& impl = channel.impl();
  const OutgoingCall call = Describe(impl, path, began_);
  const Nanos took = Now() - began_;
  const auto& all = impl.options.interceptors;
  for (uint32_t i = std::exchange(passed_, 0); i > 0; --i) all[i - 1]->After(call, status, took);
}

}  // namespace curtail::internal
