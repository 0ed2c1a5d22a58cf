// SPDX-License-Identifier: Apache-2.0
//
// variants.h - the ways of using the kernel by name.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "large.h"
#include "mid.h"

namespace curtail::bench {

struct Variant {
  std::string name;
  std::string what;            // for people
  bool large = false;          // an echo server for large messages, no mid-tier
  bool uring = false;          // needs io_uring
  bool one_at_a_time = false;  // serves one request at a time on a connection, so gets more connections
};

const std::vector<Variant>& AllVariants();
// Null for a name that is unknown.
const Variant* FindVariant(const std::string& name);

// REQUIRES: a known name, of the right kind, that is available.
std::unique_ptr<Mid> MakeMid(const std::string& name);
Reply ReplyOf(const std::string& name);

}  // namespace curtail::bench
