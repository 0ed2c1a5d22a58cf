// SPDX-License-Identifier: Apache-2.0
#include "apps/setalgebra/query_planner.h"

#include <algorithm>
#include <set>
#include <utility>

#include "apps/setalgebra/data/words.h"
#include "apps/setalgebra/index/postings.h"
#include "curtail/base/strings.h"

namespace curtail::setalgebra {
namespace {

std::string Failure(const Channel& leaf, const absl::Status& status) {
  return Join("leaf ", leaf.target(), ": ", Message(status));
}

}  // namespace

QueryPlanner::QueryPlanner(std::vector<Channel*> leaves, QueryPlannerOptions options)
    : leaves_(std::move(leaves)), options_(options) {}

absl::StatusOr<QueryPlanner::Plan> QueryPlanner::Ask(Context& ctx, const QueryRequest& request) const {
  const size_t count = static_cast<size_t>(request.terms_size());
  if (count == 0 || count > kMaxTerms) {
    return absl::InvalidArgumentError(Join("a query of ", count, " terms; want 1 to ", kMaxTerms));
  }
  Plan plan{.allow_partial = request.allow_partial()};
  for (const std::string& term : request.terms()) {
    absl::StatusOr<std::string> normal = NormalTerm(term);
    if (!normal.ok()) return normal.status();
    const auto& have = plan.request.terms();
    if (std::find(have.begin(), have.end(), *normal) == have.end())
      plan.request.add_terms(*std::move(normal));
  }
  if (plan.allow_partial && !ctx.deadline().infinite()) {
    ctx.ShortenDeadline(Deadline::At(ctx.deadline().when() - ctx.deadline().Remaining() / 10));
  }
  if (options_.leaf_timeout > Nanos(0)) ctx.ShortenDeadline(Deadline::In(options_.leaf_timeout));
  return plan;
}

absl::Status QueryPlanner::CheckShard(size_t i, const IntersectReply& reply, size_t first,
                                      uint64_t collection) const {
  if (reply.shard() != i || reply.shards() != leaves_.size()) {
    return absl::FailedPreconditionError(Join("leaf ", leaves_[i]->target(), " serves shard ", reply.shard(),
                                              "/", reply.shards(), ", but is leaf ", i, " of ",
                                              leaves_.size(), "; name all leaves, in shard order"));
  }
  if (reply.collection() != collection) {
    return absl::FailedPreconditionError(
        Join("leaves ", leaves_[first]->target(), " and ", leaves_[i]->target(),
             " hold different collections; start them with the same --data and "
             "--stop-words"));
  }
  return absl::OkStatus();
}

absl::Status QueryPlanner::Merge(const Plan& plan, std::span<const absl::StatusOr<IntersectReply>> replies,
                                 QueryReply* reply) const {
  const auto answered = [](const absl::StatusOr<IntersectReply>& one) { return one.ok(); };
  const auto first = std::find_if(replies.begin(), replies.end(), answered);
  const auto failed = std::find_if_not(replies.begin(), replies.end(), answered);
  if (failed != replies.end() && (!plan.allow_partial || first == replies.end())) {
    const Channel& leaf = *leaves_[static_cast<size_t>(failed - replies.begin())];
    return absl::Status(failed->status().code(), Failure(leaf, failed->status()));
  }
  const size_t first_index = static_cast<size_t>(first - replies.begin());
  for (size_t i = 0; i < replies.size(); ++i) {
    if (!replies[i].ok()) continue;
    absl::Status fits = CheckShard(i, *replies[i], first_index, (*first)->collection());
    if (!fits.ok()) return fits;
  }
  if ((*first)->stop_words_size() == plan.request.terms_size()) {
    return absl::InvalidArgumentError(Join("all terms are words too common to be indexed, like '",
                                           plan.request.terms(0), "'; add a rarer one"));
  }
  for (const uint32_t at : (*first)->stop_words()) {
    if (at < static_cast<uint32_t>(plan.request.terms_size())) {
      reply->add_ignored_terms(plan.request.terms(static_cast<int>(at)));
    }
  }
  uint32_t count = 0;
  for (size_t i = 0; i < replies.size(); ++i) {
    if (!replies[i].ok()) {
      reply->add_failures(Failure(*leaves_[i], replies[i].status()));
      continue;
    }
    reply->mutable_documents()->MergeFrom(replies[i]->documents());
    ++count;
  }
  reply->set_shards_answered(count);
  reply->set_shards(static_cast<uint32_t>(replies.size()));
  return absl::OkStatus();
}

}  // namespace curtail::setalgebra
