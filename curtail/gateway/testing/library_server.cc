// SPDX-License-Identifier: Apache-2.0
//
// The library of books as a server, for tests of the gateway's program.
#include "curtail/gateway/testing/library_service.h"
#include "curtail/rpc/server_main.h"

int main(int argc, char** argv) {
  return curtail::ServerMain(argc, argv, std::make_unique<curtail::gateway::LibraryService>());
}
