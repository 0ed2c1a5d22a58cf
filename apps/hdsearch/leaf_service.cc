// SPDX-License-Identifier: Apache-2.0
#include "apps/hdsearch/leaf_service.h"

#include <algorithm>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "apps/hdsearch/data/data_spec.h"
#include "apps/hdsearch/data/rows.h"
#include "apps/hdsearch/messages.h"
#include "apps/kit/parallel.h"

namespace curtail::hdsearch {

LeafService::LeafService(std::unique_ptr<const VectorStore> store)
    : Leaf::Service(/*never_waits=*/true), store_(std::move(store)), kernels_(BestKernels()) {}

absl::Status LeafService::CheckHeld(uint32_t id) const {
  if (store_->Holds(id)) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "image ", id, " is not among the rows ", store_->first_row(), " to ",
      store_->first_row() + store_->rows() - 1,
      " held here; start mid-tier and leaves with the same --data, and name the leaves in shard order"));
}

absl::Status LeafService::Nearest(Context& /*ctx*/, const NearestRequest& request, Neighbors* reply) {
  absl::StatusOr<QueryVector> query = FromProto(request.query(), store_->shape().dimension);
  if (!query.ok()) return query.status();
  if (request.k() == 0) return absl::InvalidArgumentError("k must be at least 1");
  const std::span<const uint32_t> ids(request.candidates().data(),
                                      static_cast<size_t>(request.candidates_size()));
  for (const uint32_t id : ids) {
    if (absl::Status status = CheckHeld(id); !status.ok()) return status;
  }
  TopK best(std::min<size_t>(request.k(), ids.size()));
  store_->Scan(kernels_, *query, ids, &best);
  ToProto(best.TakeSorted(), reply);
  return absl::OkStatus();
}

absl::Status LeafService::Get(Context& /*ctx*/, const GetRequest& request, GetReply* reply) {
  if (absl::Status status = CheckHeld(request.image_id()); !status.ok()) return status;
  ToProto(store_->RowAsQuery(request.image_id()), reply->mutable_vector());
  return absl::OkStatus();
}

namespace {

struct LeafOptions {
  std::string data = "fashion-mnist";
  int threads = 0;
};

MadeService MakeLeaf(const LeafOptions& options, Env& env) {
  absl::StatusOr<DataSpec> data = DataSpec::Parse(options.data);
  if (!data.ok()) return data.status();
  auto store =
      VectorStore::Load(*data, env.shard(), LoadOptions{apps::Threads(options.threads), env.quiet()});
  if (!store.ok()) return store.status();
  return std::make_unique<LeafService>(*std::move(store));
}

}  // namespace

HostedService HostedLeaf() {
  auto options = std::make_shared<LeafOptions>();
  return {.name = "leaf",
          .flags =
              [options](Flags& flags) {
                flags.Add("--data", &options->data, "The corpus; the same for all services");
                flags.Add("--threads", &options->threads, "Threads while loading, 0: one a CPU");
              },
          .make = [options](Env& env) { return MakeLeaf(*options, env); },
          .memory = [options](Env& env) -> absl::StatusOr<uint64_t> {
            const absl::StatusOr<Shape> shape = ShapeOf(options->data);
            if (!shape.ok()) return shape.status();
            return shape->rows * shape->row_bytes() / env.shard().count;
          }};
}

}  // namespace curtail::hdsearch
