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

// The bytes of memory that a message of the type of `type` takes once `bytes` are parsed, roughly; more than `most` stands
// for any such size. Two bytes of an empty message inside another become an object of 50. Takes less time than parsing.
// Bytes that are not such a message count up to the place that says so. Messages of the lite runtime: 0, as they do not
// say what they consist of.
size_t ParsedSize(std::string_view bytes, const google::protobuf::MessageLite& type, size_t most);

}  // namespace curtail::internal
