// SPDX-License-Identifier: Apache-2.0
//
// shows.h - how often each ad was shown to each user, and clicked: a table of the service `ads`, which has a table ads(id, topic, ...)
// beside it.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "apps/kit/clicks/click_model.h"
#include "curtail/store/sql/session.h"

namespace curtail::apps {

inline constexpr char kShowsSchema[] =
    "CREATE TABLE shows(user INTEGER, ad INTEGER, shown INTEGER NOT NULL, clicked INTEGER NOT NULL,"
    " PRIMARY KEY(user, ad)) STRICT, WITHOUT ROWID;"
    "CREATE INDEX shows_of ON shows(ad);";
inline constexpr char kClickModelFile[] = "ads.model";

// Counts each existing ad as shown to the user. Errors: as SqlSession.
absl::Status CountShown(SqlSession& session, uint64_t user, std::span<const uint64_t> ads);
// Counts a click. Errors: FAILED_PRECONDITION: the ad was not shown to the user so often; else as SqlSession.
absl::Status CountClick(SqlSession& session, uint64_t user, uint64_t ad);

// Learns from the shows of a data folder, and leaves the model there, if anything was shown. Unless `quiet`, it prints LossOfHeldOut().
// Errors: NOT_FOUND (no such store); else as SqlSession and WriteMessage().
absl::Status LearnClicks(const std::string& folder, const LogisticTraining& training, bool quiet);

}  // namespace curtail::apps
