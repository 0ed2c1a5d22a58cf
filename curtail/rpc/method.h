// SPDX-License-Identifier: Apache-2.0
//
// method.h - the typed name of an RPC, written by protoc-gen-curtail as `Search::kQuery`.
#pragma once

#include <string_view>

namespace curtail {

// A Method names one unary RPC and fixes the types of its messages.
template <class Request, class Reply>
struct Method {
  std::string_view path;  // "/package.Service/Method"; static storage
};

}  // namespace curtail
