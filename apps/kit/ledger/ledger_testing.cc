// SPDX-License-Identifier: Apache-2.0
#include "apps/kit/ledger/ledger_testing.h"

#include <utility>

#include "curtail/store/store_testing.h"

namespace curtail::apps {

std::unique_ptr<SqlDatabase> OpenLedger(const TempDir& dir, LedgerIn in, const std::string& name) {
  struct Server {
    TempDir dir;
    PostgresqlProcess process{dir.File("s"), {POSTGRESQL_SERVER, dir.File("data"), dir.File("s")}};
  };
  SqlOptions options;
  options.path = in == LedgerIn::kFile ? dir.File(name) : name;
  options.migrations = {kLedgerSchema, kLedgerForgetsSchema};
  options.sync = false;
  if (in == LedgerIn::kPostgresql) {
    static Server server;
    options.postgresql = server.process.address();
  }
  auto db = SqlDatabase::Open(std::move(options));
  EXPECT_TRUE(db.ok()) << db.status();
  return db.ok() ? *std::move(db) : nullptr;
}

}  // namespace curtail::apps
