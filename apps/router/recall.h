// SPDX-License-Identifier: Apache-2.0
//
// recall.h - which replicas of a shard may take part when a mid-tier starts, by the writes that they have seen.
//
// The previous mid-tier may have ended between a write and the ejection of a replica that missed it, or with replicas
// ejected. The leaves' histories show which, because Write and ReplicaSet follow these rules:
//
// 1. Versions of writes and ejections are in one order, and a write names the replicas that it goes to.
// 2. Before a write is acknowledged, every replica that its last version went to has done it.
// 3. A replica takes part again only once it has been emptied.
//
// So the members of the newest write, the replicas that it went to, took part at the end. Each of them has done
// every write that was acknowledged since it was emptied, or since the start. The member that was emptied first
// holds most: it takes part. So does every other member that has seen the same writes since it was emptied. A
// member that has not must be emptied, even if the writes that differ were not acknowledged. Otherwise gets
// would find sometimes one value, sometimes the other.
//
// A leaf that was restarted has lost its history, and gives way to a leaf that has one. That is not enough if it
// alone knew of the newest write, or if several leaves of a shard were restarted (docs/design/router.md, Limits).
#pragma once

#include <span>
#include <vector>

#include "router.pb.h"

namespace curtail::router {

// True if a leaf's history is complete. Does not trust the leaf.
[[nodiscard]] bool IsWhole(const StoreHistory& history);

// For each of `histories` (of replica 0, 1, ...) whether that replica may take part; null: it did not answer, and may
// not. At least one may if one answered. REQUIRES: each history that is there is complete.
[[nodiscard]] std::vector<bool> MayTakePart(std::span<const StoreHistory* const> histories);

}  // namespace curtail::router
