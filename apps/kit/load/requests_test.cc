// SPDX-License-Identifier: Apache-2.0
#include "apps/kit/load/requests.h"

#include <gmock/gmock.h>
#include <google/protobuf/wrappers.pb.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "apps/kit/accounts/user_requests.h"
#include "apps/kit/data/folder.h"
#include "apps/kit/load/fill.h"
#include "curtail/base/strings.h"
#include "curtail/base/testing.h"
#include "curtail/rpc/channel.h"

namespace curtail::apps {
namespace {

using testing::StartsWith;

TEST(Requests, ErrorsNameTheFlagAndTheRightForm) {
  const auto error = [](std::map<std::string, std::string, std::less<>> own) {
    const auto none = [](std::vector<LoadUser>, const UserWorkloadOptions&) {
      return absl::StatusOr<std::unique_ptr<Workload>>(absl::UnimplementedError("made"));
    };
    const AppRequests requests = UserRequests("a.B", "kit", {"mixed", "pay"}, none);
    return std::string(Message(requests.make({.own = std::move(own)}).status()));
  };
  EXPECT_EQ(error({{"mix", "mixd"}}), "--mix: unknown mix \"mixd\"; did you mean \"mixed\"?");
  EXPECT_EQ(error({{"mix", "refund"}}), "--mix: unknown mix \"refund\"; write mixed or pay");
  EXPECT_THAT(error({{"senders", "zipf"}}), StartsWith("--senders: zipf needs an exponent"));
  EXPECT_EQ(Message(RequestOptions{.own = {{"k", "ten"}}}.Number("k", 1).status()),
            "-k: \"ten\" is not a whole number from 0");
}

TEST(Requests, AFolderThatCannotBeMadeIsNamedWithTheReason) {
  EXPECT_EQ(Message(DataFolder("kit", "/proc/kit").status()),
            "--data: cannot make /proc/kit: No such file or directory");
  EXPECT_EQ(Message(DataFolder("kit", "/dev/null").status()), "--data: /dev/null is not a folder");
}

TEST(Requests, AnAddressThatNobodyListensAtIsNamedOnce) {
  FillTarget options;
  options.target.address = "127.0.0.1:1";
  options.quiet = true;
  const absl::Status status = ForAll(options, "users", 1, [](uint64_t, Channel& channel) {
    Context ctx(kMaxTestWait);
    google::protobuf::StringValue in, out;
    return channel.Call(ctx, "/a.B/C", in, &out);
  });
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(Message(status), StartsWith("users 0: 127.0.0.1:1: cannot connect"));
}

}  // namespace
}  // namespace curtail::apps
