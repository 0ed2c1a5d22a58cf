// SPDX-License-Identifier: Apache-2.0
//
// range_headers.h - the headers of an answer that is a range of a file, as the gateway hands them on.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "apps/kit/blobs/media_files.h"
#include "curtail/base/strings.h"
#include "curtail/rpc/context.h"

namespace curtail::apps {

// For what RangeOf() has returned, also its error.
inline void AddRangeHeaders(Context& ctx, const absl::StatusOr<ByteRange>& range, uint64_t size) {
  ctx.AddInitialMetadata("accept-ranges", "bytes");
  if (!range.ok()) return ctx.AddInitialMetadata("content-range", Join("bytes */", size));
  if (!range->part) return;
  const uint64_t last = range->from + range->bytes - 1;
  ctx.AddInitialMetadata("content-range", Join("bytes ", range->from, "-", last, "/", size));
}

}  // namespace curtail::apps
