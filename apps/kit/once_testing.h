// SPDX-License-Identifier: Apache-2.0
//
// once_testing.h - requests with names, as they come to a service that writes.
#pragma once

#include <google/protobuf/wrappers.pb.h>
#include <gtest/gtest.h>

#include <string>

#include "apps/kit/once.h"
#include "curtail/base/testing.h"

namespace curtail::apps {

class NamedRequest {
 public:
  NamedRequest(const std::string& name, const std::string& content) {
    Context front(kMaxTestWait);
    front.mutable_metadata().Add("idempotency-key", name);
    google::protobuf::StringValue message;
    message.set_value(content);
    const absl::Status named = NameRequest(front, "/Shop/Buy", message);
    EXPECT_TRUE(named.ok()) << named;
    ctx_.mutable_metadata() = front.ChildMetadata();
  }
  const Context& ctx() const { return ctx_; }

 private:
  Context ctx_{kMaxTestWait};
};

}  // namespace curtail::apps
