// SPDX-License-Identifier: Apache-2.0
//
// server_testing.h - starts the server of one service.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "curtail/exec/config.h"
#include "curtail/rpc/server.h"

namespace curtail {

// Serves at a port of its own. REQUIRES: the text is a config.
inline std::unique_ptr<Server> StartServer(const std::string& config, std::unique_ptr<Service> service) {
  std::vector<std::unique_ptr<Service>> services;
  services.push_back(std::move(service));
  ServerOptions options;
  options.config = *Config::Parse(config);
  auto server = Server::Start(std::move(options), std::move(services));
  EXPECT_TRUE(server.ok()) << server.status();
  return *std::move(server);
}

}  // namespace curtail
