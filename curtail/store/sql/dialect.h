// SPDX-License-Identifier: Apache-2.0
//
// dialect.h - statements and schemas, which are written for SQLite, as PostgreSQL has them.
//
// The common part: INSERT ... ON CONFLICT (not INSERT OR ...), its target columns named, and
// columns of the row that is there as TABLE.COLUMN.
#pragma once

#include <string>
#include <string_view>

namespace curtail::internal {

// "?1" becomes "$1"; the types INTEGER, TEXT and BLOB, which are written in capitals, become
// BIGINT, TEXT in the order of its bytes, and BYTEA; STRICT and WITHOUT ROWID go; AUTOINCREMENT
// becomes an identity; a column "user" is quoted. Quotations and comments from -- on stay.
std::string PostgresqlOf(std::string_view sql);

}  // namespace curtail::internal
