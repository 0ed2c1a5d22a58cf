// SPDX-License-Identifier: Apache-2.0
//
// customers_testing.h - some services in processes of their own, for tests that call them past the front end.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "apps/kit/accounts/ids.h"
#include "apps/kit/testing/start_app.h"
#include "curtail/base/strings.h"
#include "curtail/base/temp_dir_testing.h"
#include "curtail/base/testing.h"
#include "curtail/deploy/app_under_test.h"
#include "curtail/rpc/channel.h"
#include "customers.curtail.h"
#include "goods.curtail.h"

namespace curtail::shop {

// Some services of the topology, without the others. Connect by Stub() before other threads use it.
class ServicesTest : public testing::Test {
 protected:
  explicit ServicesTest(std::vector<std::string> services)
      : app_(apps::StartApp(SHOP_TOPOLOGY,
                            {.set = {"data=" + Folder()}, .options = {.only = std::move(services)}})) {}
  ~ServicesTest() override {
    channels_.clear();
    const absl::Status ended = app_->Stop();
    EXPECT_TRUE(ended.ok()) << ended;
  }

  std::string Folder() const { return dir_.File("data"); }
  template <class Rpc>
  typename Rpc::Stub Stub(const std::string& service) {
    std::unique_ptr<Channel>& channel = channels_[service];
    if (channel == nullptr) {
      ChannelOptions patient;
      patient.wait_for_ready = true;
      channel = std::make_unique<Channel>(&client_, app_->AddressOf(service), patient);
    }
    return typename Rpc::Stub(channel.get());
  }

  // Enters a product, and returns its id.
  uint64_t Enter(const std::string& name, int64_t cents, const std::vector<std::string>& tags = {}) {
    Product product, entered;
    product.set_name(name), product.set_cents(cents);
    for (const std::string& tag : tags) product.add_tags(tag);
    Context ctx(kMaxTestWait);
    const absl::Status status = Stub<Catalogue>("catalogue").Put(ctx, product, &entered);
    EXPECT_TRUE(status.ok()) << status;
    return entered.id();
  }

  const TempDir dir_;
  Client client_;
  const std::unique_ptr<deploy::AppUnderTest> app_;
  std::map<std::string, std::unique_ptr<Channel>> channels_;
};

inline apps::UserId UserIdOf(uint64_t user) {
  apps::UserId id;
  id.set_user(user);
  return id;
}

}  // namespace curtail::shop
