// SPDX-License-Identifier: Apache-2.0
#include "apps/hdsearch/workload.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "apps/hdsearch/data/data_spec.h"
#include "apps/hdsearch/index/ground_truth.h"
#include "apps/hdsearch/messages.h"
#include "apps/kit/parallel.h"
#include "hdsearch.curtail.h"
#include "hdsearch.pb.h"

namespace curtail::hdsearch {
namespace {

class SearchWorkload final : public Workload {
 public:
  SearchWorkload(std::vector<std::string> requests, GroundTruth truth, size_t k)
      : requests_(std::move(requests)), truth_(std::move(truth)), score_name_(absl::StrCat("recall@", k)) {}

  std::string_view method() const override { return Search::kQuery.path; }
  std::string Request(uint64_t index) const override { return requests_[index % requests_.size()]; }
  uint64_t distinct() const override { return requests_.size(); }

  double Score(uint64_t index, std::string_view reply) const override {
    const size_t query = index % requests_.size();
    QueryReply parsed;
    if (query >= truth_.queries()) return std::numeric_limits<double>::quiet_NaN();
    if (!parsed.ParseFromArray(reply.data(), static_cast<int>(reply.size()))) return 0;
    const auto& ids = parsed.nearest().ids();
    return Recall(truth_.Of(query), std::span(ids.data(), static_cast<size_t>(ids.size())));
  }
  std::string_view score_name() const override {
    return truth_.queries() == 0 ? std::string_view() : std::string_view(score_name_);
  }

 private:
  // Immutable after construction.
  const std::vector<std::string> requests_;  // serialized
  const GroundTruth truth_;
  const std::string score_name_;
};

absl::StatusOr<GroundTruth> TruthFor(const WorkloadOptions& options, const DataSpec& corpus,
                                     const DataSpec& spec, std::span<const QueryVector> judged) {
  const std::string path = options.cache ? GroundTruthCachePath(corpus, spec, judged.size(), options.k) : "";
  if (!path.empty()) {
    absl::StatusOr<GroundTruth> cached = ReadGroundTruth(path, judged.size(), options.k);
    if (cached.ok()) return cached;
  }
  const int threads = apps::Threads(options.threads);
  absl::StatusOr<GroundTruth> truth = BruteForce(corpus, judged, options.k, threads, options.quiet);
  // A cache that cannot be written only costs the next run time.
  if (truth.ok() && !path.empty()) WriteGroundTruth(path, *truth).IgnoreError();
  return truth;
}

absl::Status CheckFit(const DataSpec& corpus, const DataSpec& spec, size_t dimension, size_t k) {
  absl::StatusOr<std::unique_ptr<RowReader>> reader = OpenRows(corpus);
  if (!reader.ok()) return reader.status();
  const Shape shape = (*reader)->shape();
  if (dimension != shape.dimension) {
    return absl::InvalidArgumentError(absl::StrCat("queries '", spec.text, "' have ", dimension,
                                                   " dimensions, '", corpus.text, "' has ", shape.dimension));
  }
  if (k < 1 || k > shape.rows) {
    return absl::InvalidArgumentError(
        absl::StrCat("k is ", k, "; '", corpus.text, "' has ", shape.rows, " images"));
  }
  return absl::OkStatus();
}

std::string Serialize(const QueryVector& query, size_t k) {
  QueryRequest request;
  ToProto(query, request.mutable_vector());
  request.set_k(static_cast<uint32_t>(k));
  return request.SerializeAsString();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Workload>> MakeWorkload(const WorkloadOptions& options) {
  absl::StatusOr<DataSpec> corpus = DataSpec::Parse(options.data);
  if (!corpus.ok()) return corpus.status();
  absl::StatusOr<DataSpec> spec =
      options.queries.empty() ? DefaultQueries(*corpus) : DataSpec::Parse(options.queries);
  if (!spec.ok()) return spec.status();
  absl::StatusOr<std::vector<QueryVector>> queries = LoadQueries(*spec, std::max<size_t>(options.count, 1));
  if (!queries.ok()) return queries.status();
  GroundTruth truth;
  if (options.judged > 0) {
    if (absl::Status fit = CheckFit(*corpus, *spec, (*queries)[0].dimension(), options.k); !fit.ok())
      return fit;
    const std::span<const QueryVector> judged(queries->data(), std::min(options.judged, queries->size()));
    absl::StatusOr<GroundTruth> computed = TruthFor(options, *corpus, *spec, judged);
    if (!computed.ok()) return computed.status();
    truth = *std::move(computed);
  }
  std::vector<std::string> requests;
  for (const QueryVector& query : *queries) requests.push_back(Serialize(query, options.k));
  return std::make_unique<SearchWorkload>(std::move(requests), std::move(truth), options.k);
}

apps::AppRequests Requests() {
  return {.service = "curtail.hdsearch.Search",
          .options = {{"queries", "another corpus's images"}, {"k", "neighbours asked for [10]"}},
          .make = [](const apps::RequestOptions& o) -> absl::StatusOr<std::unique_ptr<Workload>> {
            WorkloadOptions options;
            const absl::StatusOr<uint64_t> k = o.Number("k", options.k);
            if (!k.ok()) return k.status();
            options.data = o.data;
            options.queries = o.Text("queries");
            options.count = o.count;
            options.k = *k;
            options.judged = o.judged;
            options.quiet = o.quiet;
            return MakeWorkload(options);
          }};
}

}  // namespace curtail::hdsearch
