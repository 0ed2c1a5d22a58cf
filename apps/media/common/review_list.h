// SPDX-License-Identifier: Apache-2.0
//
// review_list.h - the reviews of each user, or of each movie, by their ids.
#pragma once

#include <algorithm>
#include <vector>

#include "apps/kit/page.h"
#include "apps/media/data.h"

namespace curtail::media {

// A ReviewListService is UserReview or MovieReview. A row of a review that was removed stays, so that it is never listed again.
template <class Rpc, uint64_t (ReviewRef::*kOwner)() const>
struct ReviewListService final : Rpc::CoroutineService {
  ReviewListService(SqlDatabase& d, Env& e) : db(d), env(e) {}

  Coroutine Add(Context& ctx, const ReviewRef& request, apps::Nothing*) override {
    co_return co_await db.Writing(ctx.deadline(), [&](SqlSession& s) {
      return s.Execute(
          "INSERT INTO entries(review, owner, removed) VALUES (?1, ?2, 0) ON CONFLICT(review) DO NOTHING",
          {request.review(), (request.*kOwner)()});
    });
  }

  Coroutine Remove(Context& ctx, const ReviewRef& request, apps::Nothing*) override {
    co_return co_await db.Writing(ctx.deadline(), [&](SqlSession& s) {
      return s.Execute(
          "INSERT INTO entries(review, owner, removed) VALUES (?1, ?2, 1)"
          " ON CONFLICT(review) DO UPDATE SET removed = 1",
          {request.review(), (request.*kOwner)()});
    });
  }

  // A review that is not acknowledged yet is left out.
  Coroutine List(Context& ctx, const ReviewPage& request, ReviewList* reply) override {
    const uint32_t limit = apps::LimitOf(request.limit());
    apps::Ids ids;
    absl::Status status = co_await db.Reading(ctx.deadline(), [&](SqlSession& s) {
      return s.Query(
          "SELECT review FROM entries WHERE owner = ?1 AND review < ?2 AND removed = 0"
          " ORDER BY review DESC LIMIT ?3",
          {request.of(), apps::BeforeOf(request.before()), uint64_t{limit}},
          [&](const SqlRow& row) { ids.add_ids(row.Unsigned(0)); });
    });
    if (!status.ok() || ids.ids().empty()) co_return status;
    const uint64_t last = *ids.ids().rbegin();
    const bool full = ids.ids_size() == static_cast<int>(limit);
    auto [read] = co_await WhenAll(ctx, Ask(storage, ReviewStorage::kRead, std::move(ids)));
    if (!read.ok()) co_return read.status();
    *reply = *std::move(read);
    if (full) reply->set_next(last);
    co_return absl::OkStatus();
  }

  std::vector<DeclaredPath> Paths() const override {
    return {{"Add", {}}, {"Remove", {}}, {"List", {storage}}};
  }

  static std::vector<std::string> Schema() {
    return {
        "CREATE TABLE entries(review INTEGER PRIMARY KEY, owner INTEGER NOT NULL, removed INTEGER NOT NULL) "
        "STRICT;"
        "CREATE INDEX entries_of ON entries(owner, review)"};
  }

  SqlDatabase& db;
  Env& env;
  const ReviewStorage::Stub storage = env.Stub<ReviewStorage>("review-storage");
};

}  // namespace curtail::media
