// SPDX-License-Identifier: Apache-2.0
//
// The code of docs/migrating.md, and that of docs/grpc.md on interceptors, credentials and options of calls.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "curtail/base/testing.h"
#include "curtail/rpc/auth/jwt_testing.h"
#include "curtail/rpc/authentication.h"
#include "curtail/rpc/channel.h"
#include "curtail/rpc/request_log.h"
#include "curtail/rpc/server.h"
#include "curtail/rpc/transport/tls_testing.h"
#include "shop.curtail.h"

namespace {

using std::chrono::milliseconds;

// [service]
class CartService final : public shop::Cart::Service {
 public:
  absl::Status Add(curtail::Context& ctx, const shop::Item& item, shop::Total* total) override {
    if (item.count() <= 0) return absl::InvalidArgumentError("count: one at least");
    ctx.AddTrailingMetadata("x-user", ctx.metadata().Find("x-user").value_or("guest"));
    total->set_items(items_ += item.count());
    return absl::OkStatus();
  }

  absl::Status Watch(curtail::Context& ctx, const shop::Item& item,
                     curtail::StreamWriter<shop::Total>& out) override {
    ctx.AddInitialMetadata("x-name", item.name());
    out.SendInitialMetadata();  // now, not with the first message
    shop::Total total;
    for (int i = 1; i <= item.count(); ++i) {
      total.set_items(i);
      if (!out.Write(total)) return out.status();
    }
    return absl::OkStatus();
  }

  absl::Status Upload(curtail::Context&, curtail::StreamReader<shop::Item>& in, shop::Total* total) override {
    for (shop::Item item; in.Read(&item);) total->set_items(total->items() + item.count());
    return in.status();
  }

 private:
  std::atomic<int> items_{0};
};
// [/service]

// [interceptor]
// Refuses callers whose certificate is not of the shop; adds the region to each answer.
class OnlyTheShop final : public curtail::ServerInterceptor {
 public:
  absl::Status Before(const curtail::IncomingCall& call) override {
    for (const std::string& uri : call.context.peer_certificate().uris) {
      if (!uri.starts_with("spiffe://shop.example/")) continue;
      call.context.AddProperty("caller", uri);  // for the handler: ctx.properties()
      call.context.AddInitialMetadata("x-region", "eu");
      return absl::OkStatus();
    }
    return absl::PermissionDeniedError("callers need a certificate of the shop");
  }
  void After(const curtail::IncomingCall&, const absl::Status& status, curtail::Nanos took) override {
    if (!status.ok() || took > std::chrono::seconds(1)) ++remarkable;
  }
  std::atomic<int> remarkable{0};
};
// [/interceptor]

std::unique_ptr<curtail::Server> Serve(curtail::ServerOptions options) {
  std::vector<std::unique_ptr<curtail::Service>> services;
  services.push_back(std::make_unique<CartService>());
  auto server = curtail::Server::Start(std::move(options), std::move(services));
  EXPECT_TRUE(server.ok()) << server.status();
  return *std::move(server);
}

TEST(Migrating, CallsOfAllKinds) {
  auto server = Serve({});
  const std::string address = server->addresses()[0];
  // [client]
  curtail::Client client;  // of the whole process
  curtail::Channel channel(&client, address);
  const shop::Cart::Stub cart(&channel);

  curtail::Context ctx(milliseconds(60000));  // the deadline; it may make any number of calls
  ctx.AddMetadata("x-user", "alice");
  shop::Item item;
  item.set_name("tea");
  item.set_count(2);
  shop::Total total;
  curtail::ReplyMetadata metadata;
  absl::Status status = cart.Add(ctx, item, &total, &metadata);
  // [/client]
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(total.items(), 2);
  EXPECT_EQ(metadata.trailing.Find("x-user"), "alice");
  // [options]
  curtail::Context one(&ctx);  // a part of the request: options for the calls that it makes
  one.ShortenDeadline(curtail::Deadline::In(milliseconds(20000)));
  one.SetEncoding(curtail::wire::Encoding::kGzip);
  one.SetAuthority("cart.shop.example");
  one.SetMaxRequestBytes(1 << 10);
  one.SetMaxReplyBytes(64 << 10);
  status = cart.Add(one, item, &total);
  // [/options]
  EXPECT_TRUE(status.ok()) << status;
  item.set_count(0);
  EXPECT_TRUE(absl::IsInvalidArgument(cart.Add(ctx, item, &total)));
  item.set_count(3);
  // [stream]
  auto updates = cart.Watch(ctx, item);
  const std::string name(updates.InitialMetadata().Find("x-name").value_or(""));  // before any message
  int seen = 0;
  while (updates.Read(&total)) ++seen;
  status = updates.Finish();
  // [/stream]
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(name, "tea");
  EXPECT_EQ(seen, 3);
  auto upload = cart.Upload(ctx);
  EXPECT_TRUE(upload.Write(item) && upload.Write(item));
  EXPECT_TRUE(upload.Finish(&total).ok());
  EXPECT_EQ(total.items(), 6);
}

TEST(Migrating, MutualTlsInterceptorsAndTokens) {
  const curtail::TestCertificate authority({.common_name = "authority", .names = ""});
  const curtail::TestCertificate own({.common_name = "cart"}, &authority);
  const curtail::TestCertificate caller({.common_name = "web", .names = "URI:spiffe://shop.example/web"},
                                        &authority);
  const curtail::TestKey key = curtail::TestKey::Ec();
  const std::string keys = curtail::TestFile("keys.pem");
  std::FILE* const file = std::fopen(keys.c_str(), "we");
  std::fputs(key.PublicPem().c_str(), file);
  std::fclose(file);
  const std::string token = key.Sign(R"({"alg":"ES256"})", R"({"sub":"web","aud":"cart","exp":9999999999})");

  // [tls]
  curtail::ServerOptions options;
  auto server_tls = curtail::ServerTls::Load({.certificate_file = own.file(),
                                              .key_file = own.key_file(),
                                              .client_ca_file = authority.file()});  // mutual TLS
  if (!server_tls.ok()) FAIL() << server_tls.status();
  options.tls = *server_tls;
  // [/tls]
  // [jwt]
  auto verifier = curtail::JwtVerifier::Load({.key_file = keys, .audience = "cart"});
  if (!verifier.ok()) FAIL() << verifier.status();
  curtail::RequestLog log({.share = 0.01});  // all calls that fail, and one in a hundred others
  curtail::JwtAuthentication authentication(*std::move(verifier));
  OnlyTheShop only_the_shop;
  options.interceptors = {&log, &only_the_shop, &authentication};  // in this order
  // [/jwt]
  auto server = Serve(std::move(options));
  curtail::Client client;
  const std::string address = server->addresses()[0];
  // [credentials]
  auto tls = curtail::ClientTls::Load(
      {.ca_file = authority.file(), .certificate_file = caller.file(), .key_file = caller.key_file()});
  if (!tls.ok()) FAIL() << tls.status();
  curtail::BearerCredentials credentials(token);
  curtail::Channel channel(&client, address, {.tls = *tls, .interceptors = {&credentials}});
  // [/credentials]
  curtail::Context ctx(curtail::kMaxTestWait);
  shop::Item item;
  item.set_count(1);
  shop::Total total;
  curtail::ReplyMetadata metadata;
  const absl::Status status = shop::Cart::Stub(&channel).Add(ctx, item, &total, &metadata);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(metadata.initial.Find("x-region"), "eu");
  curtail::Channel without(&client, address, {.tls = *tls});
  EXPECT_TRUE(absl::IsUnauthenticated(shop::Cart::Stub(&without).Add(ctx, item, &total)));
  EXPECT_EQ(only_the_shop.remarkable, 1);
  unlink(keys.c_str());
}

}  // namespace
