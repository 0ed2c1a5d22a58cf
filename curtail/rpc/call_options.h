// SPDX-License-Identifier: Apache-2.0
//
// call_options.h - how a call is made, where that differs from its channel's options, and the
// metadata that comes back.
//
// Code: client/fan_out/fanout.cc and client/client_stream.cc apply them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "curtail/wire/encoding.h"
#include "curtail/wire/metadata.h"

namespace curtail {

using wire::Metadata;

// The metadata that came with a reply: ahead of it, and behind it or with an error.
struct ReplyMetadata {
  bool empty() const { return initial.empty() && trailing.empty(); }
  void Clear() { initial.Clear(), trailing.Clear(); }

  Metadata initial;
  Metadata trailing;
};

// How a context makes its calls, where that differs from the options of their channels.
struct CallOptions {
  std::optional<wire::Encoding> encoding;
  std::string authority;
  size_t max_request_bytes = SIZE_MAX;
  size_t max_reply_bytes = SIZE_MAX;
  bool wait_for_ready = false;

  void Clear() {
    encoding.reset(), authority.clear();
    max_request_bytes = max_reply_bytes = SIZE_MAX;
    wait_for_ready = false;
  }
};

}  // namespace curtail
