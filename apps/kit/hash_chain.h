// SPDX-License-Identifier: Apache-2.0
//
// hash_chain.h - a table of records that is only added to. Each record's hash covers all records before it, so that whoever has the
// last hash sees a record that was changed, removed or put between.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "curtail/store/sql/sql.h"

namespace curtail::apps {

class HashChain {
 public:
  struct Head {
    uint64_t links = 0;
    std::string hash = {};  // of the last record, in hexadecimal digits; empty without one
  };
  // A step of the schema of the service.
  static const char kSchema[];

  // For a transaction that writes: adds a record to the end.
  static absl::Status Append(SqlSession& s, std::string_view record);
  // Calls `each` with the records in order, and sets `*head`. Errors: of `each`; DATA_LOSS, which names the first link that is not
  // what it was.
  static absl::Status Verify(SqlSession& s, absl::FunctionRef<absl::Status(std::string_view record)> each,
                             Head* head);

 private:
  static std::string HashOf(std::string_view before, std::string_view record);
};

}  // namespace curtail::apps
