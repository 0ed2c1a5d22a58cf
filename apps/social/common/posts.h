// SPDX-License-Identifier: Apache-2.0
//
// posts.h - a property of posts that several services need.
#pragma once

#include "social.pb.h"

namespace curtail::social {

// A repost without a text and media of its own is gone when its original is.
inline bool IsBareRepost(const Post& post) {
  return post.has_original() && post.text().empty() && post.media().empty();
}

}  // namespace curtail::social
