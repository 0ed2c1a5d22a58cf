// SPDX-License-Identifier: Apache-2.0
//
// recall.h - which replicas of a shard may take part when a mid-tier starts, by the writes that they have seen.
//
// The mid-tier before may have ended between a write and the ejection of who missed it, or with replicas ejected. What
// the leaves know tells, because Write and ReplicaSet keep to this:
//
// 1. Versions of writes and ejections are in one order, and a write says to whom it goes.
// 2. A write that is acknowledged has been done by all to whom its last version went.
// 3. A replica takes part again only once it has been emptied.
//
// So those to whom the newest write went, its members, took part at the end, and each of them has done every
// write that was acknowledged since it was emptied, or since the start. Who has been there longest holds most:
// it takes part. So does each other one that has seen the same writes, as far as it was not emptied since. One
// that has not is to be emptied, also if what it lacks, or what the others lack, was not acknowledged: else gets
// would find now the one value and now the other.
//
// A leaf that was started again has forgotten what it saw; it gives way to one that has not. That is not enough
// if it alone knew of the newest write, or if several of a shard were (docs/design/router.md, Limits).
#pragma once

#include <span>
#include <vector>

#include "router.pb.h"

namespace curtail::router {

// True if a leaf's history is whole; what comes from outside may be anything.
[[nodiscard]] bool IsWhole(const StoreHistory& history);

// For each of `histories` (of replica 0, 1, ...) whether that replica may take part; null: it did not answer, and may
// not. At least one may if one answered. REQUIRES: those there are are whole.
[[nodiscard]] std::vector<bool> MayTakePart(std::span<const StoreHistory* const> histories);

}  // namespace curtail::router
