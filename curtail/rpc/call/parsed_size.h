// SPDX-License-Identifier: Apache-2.0
//
// parsed_size.h - the memory that a message will take, from its bytes.
//
// Stateless; any thread.
#pragma once

#include <cstddef>
#include <string_view>

#include "google/protobuf/message_lite.h"

namespace curtail::internal {

// The memory and the objects of a message once it is parsed, roughly.
struct ParsedSizes {
  size_t bytes = 0;
  size_t objects = 0;  // messages and texts, each of which takes time
};

// The sizes of a message of the type of `type`, from its bytes. A size beyond `most` stands for any such size, and ends the
// search. Two bytes of an empty message inside another become an object of 50. Takes less time than parsing. Bytes that are
// not such a message count up to the place that says so. Messages of the lite runtime: nothing, as they do not say what they
// consist of.
ParsedSizes ParsedSize(std::string_view bytes, const google::protobuf::MessageLite& type,
                       const ParsedSizes& most);

}  // namespace curtail::internal
