// SPDX-License-Identifier: Apache-2.0
#include "curtail/rpc/client/config/idempotent_methods.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>

#include <algorithm>

namespace curtail::internal {

bool IsDeclaredIdempotent(std::string_view path) {
  std::string name(path.substr(path.starts_with('/') ? 1 : 0));
  std::replace(name.begin(), name.end(), '/', '.');
  const auto* const method = google::protobuf::DescriptorPool::generated_pool()->FindMethodByName(name);
  return method != nullptr &&
         method->options().idempotency_level() != google::protobuf::MethodOptions::IDEMPOTENCY_UNKNOWN;
}

bool IdempotentMethods::Contains(std::string_view path) {
  MutexLock lock(mu_);
  const auto known = known_.find(path);
  if (known != known_.end()) return known->second;
  const bool idempotent = IsDeclaredIdempotent(path);
  if (known_.size() < kMost) known_.emplace(path, idempotent);
  return idempotent;
}

}  // namespace curtail::internal
