// SPDX-License-Identifier: Apache-2.0
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "bench/streams/subject.h"
#include "curtail/rpc/server.h"
#include "stream.curtail.h"

namespace curtail::bench {
namespace {

using streams::Item;
using streams::Streams;

class Service final : public Streams::Service {
 public:
  absl::Status Chat(Context&, ServerStream<Item, Item>& stream) override {
    for (Item item; stream.Read(&item) && stream.Write(item);) continue;
    return stream.status();
  }
  absl::Status Watch(Context&, const Item& request, StreamWriter<Item>& out) override {
    Item item;
    item.set_data(std::string(static_cast<size_t>(request.size()), 'x'));
    for (int64_t i = 0; i < request.count() && out.Write(item);) ++i;
    return out.status();
  }
  absl::Status Upload(Context&, StreamReader<Item>& in, Item* reply) override {
    int64_t count = 0;
    for (Item item; in.Read(&item);) ++count;
    reply->set_count(count);
    return in.status();
  }
};

absl::Status Missing() { return absl::InternalError("messages are missing"); }

class CurtailSubject final : public StreamSubject {
 public:
  explicit CurtailSubject(std::unique_ptr<Server> server) : server_(std::move(server)) {}

  absl::Status PingPong(int count, size_t size) override {
    Context ctx(kTimeout);
    auto stream = stub_.Chat(ctx);
    Item item;
    item.set_data(std::string(size, 'x'));
    int back = 0;
    while (back < count && stream.Write(item) && stream.Read(&item)) ++back;
    absl::Status status = stream.Finish();
    return status.ok() && back != count ? Missing() : status;
  }
  absl::Status Watch(int count, size_t size) override {
    Context ctx(kTimeout);
    Item item;
    item.set_count(count);
    item.set_size(static_cast<int64_t>(size));
    auto call = stub_.Watch(ctx, item);
    int seen = 0;
    while (call.Read(&item)) ++seen;
    absl::Status status = call.Finish();
    return status.ok() && seen != count ? Missing() : status;
  }
  absl::Status Upload(int count, size_t size) override {
    Context ctx(kTimeout);
    auto call = stub_.Upload(ctx);
    Item item, reply;
    item.set_data(std::string(size, 'x'));
    for (int i = 0; i < count && call.Write(item);) ++i;
    absl::Status status = call.Finish(&reply);
    return status.ok() && reply.count() != count ? Missing() : status;
  }

 private:
  static constexpr Nanos kTimeout = std::chrono::minutes(1);

  const std::unique_ptr<Server> server_;
  Client client_;
  Channel channel_{&client_, server_->addresses()[0]};
  const Streams::Stub stub_{&channel_};
};

}  // namespace

std::vector<std::string> SubjectNames() {
  std::vector<std::string> names = {"curtail-auto", "curtail-SIB1", "curtail-FIB1"};
  if (MakeGrpcSubject() != nullptr) names.emplace_back("grpc-sync");
  names.emplace_back("raw-socket");
  return names;
}

absl::StatusOr<std::unique_ptr<StreamSubject>> MakeSubject(const std::string& name) {
  if (name == "grpc-sync") {
    std::unique_ptr<StreamSubject> subject = MakeGrpcSubject();
    if (subject == nullptr) return absl::InvalidArgumentError("this build has no gRPC");
    return subject;
  }
  if (name == "raw-socket") return MakeRawSubject();
  constexpr std::string_view kOurs = "curtail-";
  if (!name.starts_with(kOurs)) return absl::InvalidArgumentError(absl::StrCat("no such subject: ", name));
  auto config = Config::Parse(std::string_view(name).substr(kOurs.size()));
  if (!config.ok()) return config.status();
  ServerOptions options;
  options.config = *config;
  std::vector<std::unique_ptr<curtail::Service>> services;
  services.push_back(std::make_unique<Service>());
  auto server = Server::Start(std::move(options), std::move(services));
  if (!server.ok()) return server.status();
  return std::make_unique<CurtailSubject>(*std::move(server));
}

}  // namespace curtail::bench
