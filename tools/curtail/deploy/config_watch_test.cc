// SPDX-License-Identifier: Apache-2.0
//
// The command's own threads: one asks a server for its config, one draws on a terminal, the main thread runs the load.
#include "tools/curtail/deploy/config_watch.h"

#include <poll.h>
#include <pty.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "curtail/base/testing.h"
#include "curtail/rpc/server.h"
#include "gtest/gtest.h"
#include "tools/curtail/term/progress.h"

namespace curtail::tool {
namespace {

// Standard error is a terminal of this test's own.
class Terminal {
 public:
  Terminal() : stderr_(dup(STDERR_FILENO)) {
    setenv("TERM", "xterm", 1);
    int follower = -1;
    const winsize wide{.ws_row = 24, .ws_col = 500};  // longer lines are cut
    if (openpty(&leader_, &follower, nullptr, nullptr, &wide) != 0) return;
    dup2(follower, STDERR_FILENO);
    close(follower);
  }
  ~Terminal() {
    dup2(stderr_, STDERR_FILENO);
    close(stderr_);
    close(leader_);
  }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  // Reads until `text` was shown.
  bool Await(std::string_view text) {
    const Deadline limit = Deadline::In(kMaxTestWait);
    while (shown_.find(text) == std::string::npos) {
      pollfd ready{leader_, POLLIN, 0};
      if (limit.Expired()) return false;
      if (poll(&ready, 1, 100) <= 0) continue;
      char buffer[4096];
      const ssize_t got = read(leader_, buffer, sizeof(buffer));
      if (got > 0) shown_.append(buffer, static_cast<size_t>(got));
    }
    return true;
  }
  std::string last_shown() const {
    return shown_.substr(shown_.size() - std::min<size_t>(shown_.size(), 300));
  }

 private:
  const int stderr_;
  int leader_ = -1;
  std::string shown_;
};

Config MustParse(const char* text) {
  absl::StatusOr<Config> config = Config::Parse(text);
  EXPECT_TRUE(config.ok()) << config.status();
  return *config;
}

TEST(ConfigWatch, ShowsSwitchesOnTheProgressLine) {
  Terminal terminal;
  ServerOptions options;
  options.admin = "127.0.0.1:0";
  options.config = MustParse("SIB1");
  auto server = Server::Start(std::move(options), {});
  ASSERT_TRUE(server.ok()) << server.status();
  Live live;
  Console console;
  ASSERT_TRUE(console.shows_progress());
  std::vector<LoadInterval> series(2);
  {
    ConfigWatch watch((*server)->admin_address(), &live);
    {
      ProgressLine line(&console, &live, "load", std::chrono::seconds(1), [&] { return watch.Text(); });
      live.sent_per_s.store(7, std::memory_order_relaxed);
      EXPECT_TRUE(terminal.Await("sent 7/s")) << terminal.last_shown();
      EXPECT_TRUE(terminal.Await("SIB1, 0 switches")) << terminal.last_shown();
      live.elapsed_ns.store(1'000'000'000, std::memory_order_relaxed);
      EXPECT_TRUE((*server)->SwitchTo(MustParse("SDB1-2")).ok());
      EXPECT_TRUE(terminal.Await("SDB1-2, 1 switch")) << terminal.last_shown();
    }
    series[0].end = std::chrono::milliseconds(500);
    series[1].end = std::chrono::seconds(2);
    watch.Fill(series);
  }
  EXPECT_EQ(series[0].config, "SIB1");
  EXPECT_EQ(series[1].config, "SDB1-2");
}

TEST(ConfigWatch, SaysWhyTheConfigIsNotKnown) {
  Live live;
  ConfigWatch watch("unix:/nonexistent/admin.sock", &live);
  const Deadline limit = Deadline::In(kMaxTestWait);
  while (watch.Text().empty() && !limit.Expired()) BetweenLooks();
  EXPECT_NE(watch.Text().find("config not known: "), std::string::npos) << watch.Text();
  std::vector<LoadInterval> series(1);
  watch.Fill(series);
  EXPECT_EQ(series[0].config, "");
}

}  // namespace
}  // namespace curtail::tool
