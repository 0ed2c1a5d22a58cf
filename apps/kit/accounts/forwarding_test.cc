// SPDX-License-Identifier: Apache-2.0
#include "apps/kit/accounts/forwarding.h"

#include <gmock/gmock.h>

#include <map>

#include "apps/kit/accounts/access_testing.h"
#include "apps/kit/accounts/tokens.h"

namespace curtail::apps {
namespace {

using test::Asked;
using test::Filled;
using test::Front;
using testing::HasSubstr;

class ForwardingTest : public AccessTest {};
INSTANTIATE_TEST_SUITE_P(Models, ForwardingTest, testing::Values("SDB1-2", "FIB1", "AIB1-1"),
                         [](const auto& test) { return std::string(test.param).substr(0, 3); });

TEST_P(ForwardingTest, FillsTheRequestOfTheOtherMethod) {
  Serve(std::make_unique<Front::CoroutineService>());
  Asked asked;
  asked.set_token(Token(7));
  asked.set_name("seven");
  asked.set_id(11);
  asked.set_text("text");
  asked.set_taste(test::SWEET);
  asked.add_people()->set_name("first");
  asked.add_people()->set_name("second");
  asked.add_words("one"), asked.add_words("two");
  asked.mutable_person()->set_id(3);
  asked.set_flag(true);
  asked.set_int32(-1), asked.set_int64(-2), asked.set_uint32(4);
  asked.set_maybe(0);
  asked.set_number(0.5);  // the other method has no such field
  Filled wanted;
  wanted.set_by(7), wanted.set_viewer(7), wanted.set_named(7);
  wanted.set_post(11);
  wanted.mutable_held()->set_id(11);
  wanted.set_text("text");
  wanted.set_taste(test::SWEET);
  *wanted.mutable_people() = asked.people();
  *wanted.mutable_words() = asked.words();
  *wanted.mutable_person() = asked.person();
  wanted.set_flag(true);
  wanted.set_int32(-1), wanted.set_int64(-2), wanted.set_uint32(4);
  wanted.set_maybe(0);
  wanted.set_token(asked.token());
  wanted.set_request_name("mine");
  Context ctx(kMaxTestWait);
  ctx.AddMetadata("idempotency-key", "mine");
  Filled filled;
  const absl::Status status = Front::Stub(channel_.get()).Echo(ctx, asked, &filled);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(filled.DebugString(), wanted.DebugString());
}

TEST_P(ForwardingTest, SaysThatTheUserHasGivenACode) {
  Serve(std::make_unique<Front::CoroutineService>());
  Asked asked;
  asked.set_name("seven");
  for (const bool given : {false, true}) {
    asked.set_token(Token(7, 0, given ? kSteppedUpEnd : ""));
    Context ctx(kMaxTestWait);
    Filled filled;
    const absl::Status status = Front::Stub(channel_.get()).Echo(ctx, asked, &filled);
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_EQ(filled.stepped_up(), given);
  }
}

TEST_P(ForwardingTest, LeavesOutWhatTheClientHasNotSet) {
  Serve(std::make_unique<Front::CoroutineService>());
  Asked asked;
  asked.set_token(Token(7));
  asked.set_name("seven");
  Context ctx(kMaxTestWait);
  Filled filled;
  ASSERT_TRUE(Front::Stub(channel_.get()).Echo(ctx, asked, &filled).ok());
  EXPECT_FALSE(filled.has_person() || filled.has_maybe()) << filled.DebugString();
}

TEST_P(ForwardingTest, ReturnsTheErrorsOfUserAndOfTheOtherMethod) {
  Serve(std::make_unique<Front::CoroutineService>());
  const Front::Stub front(channel_.get());
  Asked asked;
  Filled filled;
  Context ctx(kMaxTestWait);
  EXPECT_TRUE(absl::IsUnauthenticated(front.Echo(ctx, asked, &filled)));
  asked.set_token(Token(7));
  asked.set_name("nobody");
  const absl::Status nobody = front.Echo(ctx, asked, &filled);
  EXPECT_EQ(nobody, absl::NotFoundError("there is no user of that name"));
  asked.set_name("seven");
  asked.set_text("fail");
  EXPECT_EQ(front.Echo(ctx, asked, &filled), absl::NotFoundError("no such thing"));
  ctx.AddMetadata("idempotency-key", std::string(200, 'x'));
  EXPECT_TRUE(absl::IsInvalidArgument(front.Echo(ctx, asked, &filled)));
}

TEST_P(ForwardingTest, NamesNoRequestOfAnybody) {
  Serve(std::make_unique<Front::CoroutineService>());
  Filled asked, filled;
  asked.set_text("text");
  Context ctx(kMaxTestWait);
  ctx.AddMetadata("idempotency-key", "mine");
  const absl::Status status = Front::Stub(channel_.get()).EchoPublic(ctx, asked, &filled);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(filled.DebugString(), asked.DebugString());
}

TEST_P(ForwardingTest, NothingBecomesChanged) {
  Serve(std::make_unique<Front::CoroutineService>());
  const Front::Stub front(channel_.get());
  TokenRequest asked;
  Changed reply;
  asked.set_token(Token(7));
  Context ctx(kMaxTestWait);
  const absl::Status status = front.Drop(ctx, asked, &reply);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_TRUE(reply.changed());
  asked.set_token(Token(8));
  EXPECT_TRUE(absl::IsInvalidArgument(front.Drop(ctx, asked, &reply)));
}

TEST_P(ForwardingTest, DeclaresTheirCalls) {
  const MadeService made = Make(std::make_unique<Front::CoroutineService>());
  ASSERT_TRUE(made.ok()) << made.status();
  std::map<std::string, std::vector<std::string>> calls;
  for (const DeclaredPath& path : (*made)->Paths())
    for (const PathCall& call : path.calls) calls[path.method].push_back(call.name);
  const std::string back(test::Back::kServiceName), user(User::kServiceName);
  const decltype(calls) wanted = {{"Echo", {back, user}}, {"EchoPublic", {back}}, {"Drop", {back, user}}};
  EXPECT_EQ(calls, wanted);
}

using WrongForwardingTest = ForwardingTest;
INSTANTIATE_TEST_SUITE_P(All, WrongForwardingTest, testing::Values(""), [](const auto&) { return "Any"; });

TEST_P(WrongForwardingTest, IsRefusedAtTheStart) {
  const auto refused = [&](std::unique_ptr<Service> service) {
    const std::string name(service->FullName());
    const absl::Status status = Make(std::move(service)).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << name << ": " << status;
    EXPECT_THAT(Message(status), HasSubstr(name + ".Call, option (curtail.apps.forward): "));
    return std::string(Message(status));
  };
  const auto says = [&](auto service, const char* words) {
    EXPECT_THAT(refused(std::move(service)), HasSubstr(words));
  };
  says(std::make_unique<test::NoSuchMethod::CoroutineService>(), "there is no method \"Back.Echo\"");
  says(std::make_unique<test::OtherReply::CoroutineService>(),
       "Back.Echo returns a curtail.apps.test.Filled");
  says(std::make_unique<test::Streams::CoroutineService>(), "may stream");
  says(std::make_unique<test::NoCaller::CoroutineService>(), "`caller`");
  says(std::make_unique<test::CallerOfAnybody::CoroutineService>(), "`caller`");
  says(std::make_unique<test::CallerIsNoId::CoroutineService>(), "no field \"text\" of type uint64");
  says(std::make_unique<test::SteppedUpIsNoBool::CoroutineService>(), "no field \"text\" of type bool");
  says(std::make_unique<test::NoSuchField::CoroutineService>(), "no field \"held.no\"");
  says(std::make_unique<test::NothingGiven::CoroutineService>(), "no field \"\"");
  says(std::make_unique<test::NameIsNoName::CoroutineService>(), "\"named=id\" is not an id and a name");
  says(std::make_unique<test::OtherType::CoroutineService>(), "cannot copy");
  says(std::make_unique<test::NotCopied::CoroutineService>(), "Asked.number");
}

}  // namespace
}  // namespace curtail::apps
