// SPDX-License-Identifier: Apache-2.0
//
// The id of an end-to-end path: who carries it on, and that a client's ids fill nothing.
#include <gtest/gtest.h>
#include <malloc.h>

#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "curtail/fence/path_id.h"
#include "curtail/rpc/rpc_testing.h"

namespace curtail {
namespace {

inline constexpr Method<StringValue, StringValue> kTell{"/test.Paths/Tell"};
inline constexpr Method<StringValue, StringValue> kPassOn{"/test.Paths/Pass"};

std::string Hex(uint32_t id) {
  char buffer[8];
  return id == 0 ? "none" : std::string(FormatPathId(id, buffer));
}

// Tell answers its path and what came as metadata; Pass asks the next one.
class PathsService final : public Service {
 public:
  explicit PathsService(Channel* next) : next_(next) {}
  std::string_view FullName() const override { return "test.Paths"; }
  std::vector<MethodHandler> Handlers() override {
    return {{.name = "Tell",
             .handler = internal::UnaryHandler<StringValue, StringValue>(
                 [](Context& ctx, const StringValue&, StringValue* out) {
                   const auto came = ctx.metadata().Find(kPathKey);
                   out->set_value(Join(Hex(ctx.path()), " ", came.value_or("none")));
                   return absl::OkStatus();
                 })},
            {.name = "Pass",
             .handler = internal::UnaryHandler<StringValue, StringValue>(
                 [this](Context& ctx, const StringValue& in, StringValue* out) {
                   const std::array<Channel*, 2> next = {next_, next_};
                   Context part(&ctx);
                   auto replies = part.Broadcast(next, kTell, in);
                   for (auto& reply : replies) {
                     if (!reply.ok()) return reply.status();
                   }
                   *out = *replies[1];
                   return absl::OkStatus();
                 })}};
  }

 private:
  Channel* const next_;
};

class FencePath : public RpcBase, public testing::TestWithParam<const char*> {
 protected:
  std::unique_ptr<Server> Serve(FenceMode mode, Channel* next) {
    ServerOptions options;
    options.config = *Config::Parse(GetParam());
    options.fence.mode = mode;
    std::vector<std::unique_ptr<Service>> services;
    services.push_back(std::make_unique<PathsService>(next));
    auto server = Server::Start(std::move(options), std::move(services));
    EXPECT_TRUE(server.ok()) << server.status();
    return *std::move(server);
  }
  // The end of a chain of two servers hears this, of a request that brings `id`, or none.
  std::string AtTheEnd(FenceMode front, const std::string& id) {
    const auto leaf = Serve(FenceMode::kStrict, nullptr);
    Client between, client;
    Channel next(&between, leaf->addresses()[0]);
    const auto server = Serve(front, &next);
    Channel channel(&client, server->addresses()[0]);
    Context ctx(kMaxTestWait);
    if (!id.empty()) ctx.AddMetadata(kPathKey, id);
    StringValue reply;
    const absl::Status status = channel.Call(ctx, kPassOn.path, Text("x"), &reply);
    EXPECT_TRUE(status.ok()) << status;
    return reply.value();
  }
};

INSTANTIATE_TEST_SUITE_P(Models, FencePath, testing::Values("SIB2", "SDB1-4", "FIB1"),
                         [](const auto& info) { return std::string(info.param).substr(0, 3); });

TEST_P(FencePath, IsCarriedOn) {
  const std::string id = Hex(PathIdOf(kPassOn.path));
  EXPECT_EQ(AtTheEnd(FenceMode::kStrict, id), id + " " + id);
  EXPECT_EQ(AtTheEnd(FenceMode::kDryRun, "00c0ffee"), "00c0ffee 00c0ffee");
}

TEST_P(FencePath, IsNotMadeByServers) { EXPECT_EQ(AtTheEnd(FenceMode::kStrict, ""), "none none"); }

TEST_P(FencePath, EndsWhereItIsNoId) {
  for (const std::string& id : {std::string("x"), std::string("00000000"), std::string(4000, 'a')}) {
    EXPECT_EQ(AtTheEnd(FenceMode::kOn, id), "none none") << id;
  }
}

TEST_P(FencePath, EndsWhereFencesAreOff) { EXPECT_EQ(AtTheEnd(FenceMode::kOff, "00c0ffee"), "none none"); }

// Requests with an id each, at once by the hundred, leave nothing behind. A thread of the server keeps a buffer of 64 KiB from
// the first one that it reads, which may be any. Sanitizers count no heap.
TEST_P(FencePath, AClientsIdsFillNothing) {
  struct Answer final : Completion {
    void Done(absl::Status&& s, std::string&&) override { ok += s.ok(), ++done; }
    int done = 0, ok = 0;
  } answer;
  const auto server = Serve(FenceMode::kStrict, nullptr);
  Client client;
  Channel channel(&client, server->addresses()[0]);
  const std::string request = Text("x").SerializeAsString();
  const auto send = [&](uint32_t first, int count) {
    answer.done = answer.ok = 0;
    const Deadline limit = Deadline::In(kMaxTestWait);
    for (int sent = 0; answer.done < count && !limit.Expired();) {
      for (; sent < count && sent - answer.done < 100; ++sent) {
        Metadata metadata;
        metadata.AddLowerCase(kPathKey, Hex(first + static_cast<uint32_t>(sent)));
        channel.Start(kTell.path, limit, metadata, request, &answer);
      }
      client.Poll(Deadline::In(milliseconds(1)));
    }
    ASSERT_EQ(answer.ok, count);
  };
  constexpr int kMany = kSanitized ? 2000 : 90'000;
  constexpr size_t kBuffers = 4 * (65u << 10);
  send(1, 5000);
  const size_t classes = server->Sample().fences->classes.size();
  const size_t held = mallinfo2().uordblks;
  send(5001, kMany);
  EXPECT_EQ(server->Sample().fences->classes.size(), classes);
  EXPECT_LT(mallinfo2().uordblks, held + kBuffers + (64u << 10)) << "less than four bytes an id";
}

}  // namespace
}  // namespace curtail
