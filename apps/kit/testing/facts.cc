// SPDX-License-Identifier: Apache-2.0
#include "apps/kit/testing/facts.h"

#include <algorithm>

namespace curtail::apps {

Possible ValueIn(Span span, const std::vector<Change>& changes) {
  Possible possible(false, false);
  for (const Change& change : changes) {
    const bool own = change.span.began == span.began, later = change.span.began >= span.ended;
    const bool undone = std::ranges::any_of(changes, [&](const Change& other) {
      return other.certain && other.to != change.to && other.span.began >= change.span.ended &&
             other.span.ended < span.began;
    });
    if (!own && !later && !undone) (change.to ? possible.yes : possible.no) = true;
  }
  return possible;
}

}  // namespace curtail::apps
