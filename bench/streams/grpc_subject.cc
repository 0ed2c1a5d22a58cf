// SPDX-License-Identifier: Apache-2.0
#include <grpcpp/grpcpp.h>

#include "absl/strings/str_cat.h"
#include "bench/streams/subject.h"
#include "stream.grpc.pb.h"

namespace curtail::bench {
namespace {

using streams::Item;
using streams::peer::Streams;

class Service final : public Streams::Service {
 public:
  grpc::Status Chat(grpc::ServerContext*, grpc::ServerReaderWriter<Item, Item>* stream) override {
    for (Item item; stream->Read(&item) && stream->Write(item);) continue;
    return grpc::Status::OK;
  }
  grpc::Status Watch(grpc::ServerContext*, const Item* request, grpc::ServerWriter<Item>* out) override {
    Item item;
    item.set_data(std::string(static_cast<size_t>(request->size()), 'x'));
    for (int64_t i = 0; i < request->count() && out->Write(item);) ++i;
    return grpc::Status::OK;
  }
  grpc::Status Upload(grpc::ServerContext*, grpc::ServerReader<Item>* in, Item* reply) override {
    int64_t count = 0;
    for (Item item; in->Read(&item);) ++count;
    reply->set_count(count);
    return grpc::Status::OK;
  }
};

absl::Status Ended(const grpc::Status& status, bool whole) {
  if (!status.ok()) {
    return absl::Status(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
  }
  return whole ? absl::OkStatus() : absl::InternalError("messages are missing");
}

class GrpcSubject final : public StreamSubject {
 public:
  GrpcSubject() {
    int port = 0;
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
    stub_ = Streams::NewStub(
        grpc::CreateChannel(absl::StrCat("127.0.0.1:", port), grpc::InsecureChannelCredentials()));
  }
  ~GrpcSubject() override { server_->Shutdown(std::chrono::system_clock::now()); }

  absl::Status PingPong(int count, size_t size) override {
    grpc::ClientContext context;
    const auto stream = stub_->Chat(&context);
    Item item;
    item.set_data(std::string(size, 'x'));
    int back = 0;
    while (back < count && stream->Write(item) && stream->Read(&item)) ++back;
    stream->WritesDone();
    return Ended(stream->Finish(), back == count);
  }
  absl::Status Watch(int count, size_t size) override {
    grpc::ClientContext context;
    Item item;
    item.set_count(count);
    item.set_size(static_cast<int64_t>(size));
    const auto call = stub_->Watch(&context, item);
    int seen = 0;
    while (call->Read(&item)) ++seen;
    return Ended(call->Finish(), seen == count);
  }
  absl::Status Upload(int count, size_t size) override {
    grpc::ClientContext context;
    Item item, reply;
    const auto call = stub_->Upload(&context, &reply);
    item.set_data(std::string(size, 'x'));
    for (int i = 0; i < count && call->Write(item);) ++i;
    call->WritesDone();
    const grpc::Status status = call->Finish();
    return Ended(status, reply.count() == count);
  }

 private:
  Service service_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<Streams::Stub> stub_;
};

}  // namespace

std::unique_ptr<StreamSubject> MakeGrpcSubject() { return std::make_unique<GrpcSubject>(); }

}  // namespace curtail::bench
