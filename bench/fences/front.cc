// SPDX-License-Identifier: Apache-2.0
#include "bench/fences/front.h"

#include <span>
#include <string>
#include <utility>

#include "curtail/rpc/coroutine.h"
#include "front.curtail.h"
#include "hdsearch.curtail.h"
#include "recommend.curtail.h"
#include "router.curtail.h"
#include "setalgebra.curtail.h"

namespace curtail::fences {
namespace {

using hdsearch::Search;
using recommend::Recommend;
using router::Router;
using setalgebra::SetAlgebra;

constexpr uint64_t kDistinct = 256;

std::vector<DeclaredPath> FrontPaths() {
  return {{"Browse", {Search::kServiceName, Recommend::kServiceName}},
          {"Read", {Router::kServiceName, SetAlgebra::kServiceName}}};
}

class FrontService final : public Front::Service {
 public:
  explicit FrontService(const ApplicationChannels& channels) : channels_(channels) {}

  absl::Status Browse(Context& ctx, const BrowseRequest& in, BrowseReply* out) override {
    hdsearch::QueryReply images;
    recommend::PredictReply rating;
    absl::Status status = Search::Stub(channels_[0]).Query(ctx, in.query(), &images);
    if (status.ok()) status = Recommend::Stub(channels_[1]).Predict(ctx, in.rating(), &rating);
    out->set_images(static_cast<uint32_t>(images.nearest().ids_size()));
    out->set_rating(rating.rating());
    return status;
  }

  absl::Status Read(Context& ctx, const ReadRequest& in, ReadReply* out) override {
    router::GetReply record;
    setalgebra::QueryReply found;
    absl::Status status = Router::Stub(channels_[2]).Get(ctx, in.record(), &record);
    if (status.ok()) status = SetAlgebra::Stub(channels_[3]).Query(ctx, in.documents(), &found);
    out->set_found(record.found());
    out->set_documents(static_cast<uint32_t>(found.documents_size()));
    return status;
  }

  std::vector<DeclaredPath> Paths() const override { return FrontPaths(); }

 private:
  const ApplicationChannels channels_;
};

class FrontCoroutines final : public Front::CoroutineService {
 public:
  explicit FrontCoroutines(const ApplicationChannels& channels) : channels_(channels) {}

  Coroutine Browse(Context& ctx, const BrowseRequest& in, BrowseReply* out) override {
    const auto images = co_await broadcast(ctx, To(0), Search::kQuery, in.query());
    if (!images[0].ok()) co_return images[0].status();
    const auto rating = co_await broadcast(ctx, To(1), Recommend::kPredict, in.rating());
    if (!rating[0].ok()) co_return rating[0].status();
    out->set_images(static_cast<uint32_t>(images[0]->nearest().ids_size()));
    out->set_rating(rating[0]->rating());
    co_return absl::OkStatus();
  }

  Coroutine Read(Context& ctx, const ReadRequest& in, ReadReply* out) override {
    const auto record = co_await broadcast(ctx, To(2), Router::kGet, in.record());
    if (!record[0].ok()) co_return record[0].status();
    const auto found = co_await broadcast(ctx, To(3), SetAlgebra::kQuery, in.documents());
    if (!found[0].ok()) co_return found[0].status();
    out->set_found(record[0]->found());
    out->set_documents(static_cast<uint32_t>(found[0]->documents_size()));
    co_return absl::OkStatus();
  }

  std::vector<DeclaredPath> Paths() const override { return FrontPaths(); }

 private:
  std::span<Channel* const> To(size_t application) const {
    return std::span<Channel* const>(channels_).subspan(application, 1);
  }

  const ApplicationChannels channels_;
};

// Sends prepared messages in turn.
class PreparedWorkload final : public Workload {
 public:
  PreparedWorkload(std::string_view method, std::vector<std::string> messages)
      : method_(method), messages_(std::move(messages)) {}
  std::string_view method() const override { return method_; }
  std::string Request(uint64_t index) const override { return messages_[index % messages_.size()]; }

 private:
  // Immutable after construction.
  const std::string_view method_;
  const std::vector<std::string> messages_;
};

// `first` and `second` give the parts of a Message.
template <class Message, class First, class Second>
absl::StatusOr<Requests> Prepare(std::string_view method, const Requests& a, const Requests& b, First first,
                                 Second second) {
  std::vector<std::string> messages;
  for (uint64_t i = 0; i < kDistinct; ++i) {
    Message message;
    if (!(message.*first)()->ParseFromString(a->Request(i)) ||
        !(message.*second)()->ParseFromString(b->Request(i))) {
      return absl::InternalError("an application's request is not what the front passes on");
    }
    messages.push_back(message.SerializeAsString());
  }
  return std::make_shared<PreparedWorkload>(method, std::move(messages));
}

}  // namespace

std::vector<std::unique_ptr<Service>> MakeFront(const ApplicationChannels& channels) {
  std::vector<std::unique_ptr<Service>> services;
  services.push_back(std::make_unique<FrontService>(channels));
  services.push_back(std::make_unique<FrontCoroutines>(channels));
  return services;
}

absl::StatusOr<Requests> MakeBrowse(const Requests& hdsearch, const Requests& recommend) {
  return Prepare<BrowseRequest>(Front::kBrowse.path, hdsearch, recommend, &BrowseRequest::mutable_query,
                                &BrowseRequest::mutable_rating);
}

absl::StatusOr<Requests> MakeRead(const Requests& router, const Requests& setalgebra) {
  return Prepare<ReadRequest>(Front::kRead.path, router, setalgebra, &ReadRequest::mutable_record,
                              &ReadRequest::mutable_documents);
}

}  // namespace curtail::fences
