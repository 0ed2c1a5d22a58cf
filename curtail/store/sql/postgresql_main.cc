// SPDX-License-Identifier: Apache-2.0
//
// A PostgreSQL server for tests: postgresql_server FOLDER SOCKET.
#include <cstdio>

#include "curtail/base/strings.h"
#include "curtail/store/sql/postgresql_server.h"

int main(int argc, char** argv) {
  if (argc != 3) return 104;
  const absl::Status status = curtail::BecomePostgresql(argv[1], argv[2]);
  std::fprintf(stderr, "%s\n", std::string(curtail::Message(status)).c_str());
  return 1;
}
