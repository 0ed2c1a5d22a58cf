// SPDX-License-Identifier: Apache-2.0
#include "tools/curtail/train/fence_classes.h"

#include <memory>
#include <string>

#include "curtail/base/strings.h"
#include "curtail/rpc/admin/admin.pb.h"
#include "gmock/gmock.h"

namespace curtail::tool {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Ten requests: every third reads, every fifth writes, the rest ask for the version.
class Mixed final : public Workload {
 public:
  std::string_view method() const override { return "/a.S/Version"; }
  std::string_view MethodOf(uint64_t index) const override {
    return index % 3 == 0 ? "/a.S/Read" : index % 5 == 0 ? "/a.S/Write" : "/a.S/Version";
  }
  std::string Request(uint64_t index) const override { return Join(index); }
  uint64_t distinct() const override { return 10; }
};

admin::v1::GetStatusReply DryRun() {
  admin::v1::GetStatusReply status;
  status.mutable_fences()->set_mode("dry-run");
  admin::v1::FenceClass* const local = status.mutable_fences()->add_classes();
  local->set_name("local"), local->add_methods("/a.S/Version");
  admin::v1::FenceClass* const users = status.mutable_fences()->add_classes();
  users->set_name("a.Users+a.Posts"), users->add_methods("/a.S/Write"), users->add_methods("/a.S/Read");
  return status;
}

TEST(FenceClasses, GroupsRequestsByTheClassesOfTheirMethods) {
  const auto workload = std::make_shared<Mixed>();
  const std::vector<RequestGroup> methods = GroupByMethod(*workload);
  ASSERT_EQ(methods.size(), 3u);
  EXPECT_THAT(methods[0].methods, ElementsAre("/a.S/Read"));
  EXPECT_THAT(methods[0].requests, ElementsAre(0, 3, 6, 9));
  const auto groups = GroupByClass(methods, DryRun());
  ASSERT_TRUE(groups.ok()) << groups.status();
  ASSERT_EQ(groups->size(), 2u);
  EXPECT_EQ((*groups)[0].path_class, "a.Users+a.Posts");
  EXPECT_THAT((*groups)[0].methods, ElementsAre("/a.S/Read", "/a.S/Write"));
  EXPECT_THAT((*groups)[0].requests, ElementsAre(0, 3, 5, 6, 9));
  EXPECT_THAT((*groups)[1].requests, ElementsAre(1, 2, 4, 7, 8));
  const ChosenRequests chosen(workload, (*groups)[0].requests);
  EXPECT_EQ(chosen.Request(2), "5");
  EXPECT_EQ(chosen.MethodOf(2), "/a.S/Write");
  EXPECT_EQ(chosen.Request(5), "0") << "from the first again";
  EXPECT_THAT(ServicesOf("a.Users+a.Posts"), ElementsAre("a.Posts", "a.Users"));
}

TEST(FenceClasses, RefusesWhatItCannotTellApart) {
  const std::vector<RequestGroup> methods = GroupByMethod(Mixed());
  admin::v1::GetStatusReply status = DryRun();
  status.mutable_fences()->set_mode("strict");
  EXPECT_THAT(Message(GroupByClass(methods, status).status()), HasSubstr("runs with --fence strict"));
  status.clear_fences();
  EXPECT_THAT(Message(GroupByClass(methods, status).status()), HasSubstr("runs with --fence off"));
  for (const char* name : {"unknown", "other"}) {
    status = DryRun();
    status.mutable_fences()->mutable_classes(1)->set_name(name);
    EXPECT_THAT(Message(GroupByClass(methods, status).status()), HasSubstr(Join("of /a.S/Read is ", name)));
  }
  status = DryRun();
  status.mutable_fences()->mutable_classes(1)->clear_methods();
  EXPECT_THAT(Message(GroupByClass(methods, status).status()), HasSubstr("of /a.S/Read is not told"));
}

}  // namespace
}  // namespace curtail::tool
