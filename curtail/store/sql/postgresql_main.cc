// SPDX-License-Identifier: Apache-2.0
//
// PostgreSQL servers for tests: postgresql_server FOLDER SOCKET; or, of two, postgresql_server FOLDER SOCKET,SOCKET 0|1|failover.
#include <cstdio>
#include <string>
#include <string_view>

#include "curtail/base/strings.h"
#include "curtail/store/sql/postgresql_server.h"

int main(int argc, char** argv) {
  if (argc < 3) return 104;
  curtail::PostgresqlGroup group{.folder = argv[1]};
  const std::string sockets = argv[2];
  group.sockets.push_back(sockets.substr(0, sockets.find(',')));
  if (argc > 3) group.sockets.push_back(sockets.substr(sockets.find(',') + 1));
  const std::string_view what = argc > 3 ? argv[3] : "0";
  const absl::Status status =
      what == "failover"
          ? curtail::FailOverPostgresql(group, curtail::Deadline::In(std::chrono::seconds(100)),
                                        [](std::string_view step) { std::puts(std::string(step).c_str()); })
          : curtail::BecomePostgresql(group, what == "1" ? 1 : 0);
  if (status.ok()) return 0;
  std::fprintf(stderr, "%s\n", std::string(curtail::Message(status)).c_str());
  return 1;
}
