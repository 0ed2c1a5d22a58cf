// SPDX-License-Identifier: Apache-2.0
#include "fleet.h"

#include <poll.h>

#include <initializer_list>
#include <utility>

#include "absl/strings/str_cat.h"
#include "curtail/base/testing.h"

namespace curtail::soak {
namespace {

constexpr const char* kConfigs[] = {"auto",     "SIB2",     "SIP1", "SDB1-8", "SDP1-8", "AIB2-2", "AIP1-1",
                                    "ADB1-4-2", "ADP1-4-2", "FIB2", "FIP1",   "FDB1-2", "FDP1-2"};

// Free of what other programs listen at: they use 127.0.0.1.
std::string Loopback(const char* port) { return absl::StrCat("127.83.65.75:", port); }

}  // namespace

Fleet::Fleet(const std::string& folder, const std::string& program, const std::string& certificate,
             const std::string& key)
    : folder_(folder),
      program_(program),
      leaf_("leaf", {program_, "--listen", Socket("leaf")}, folder_ + "/leaf.log"),
      steady_("steady", Arguments("steady", {}), folder_ + "/steady.log"),
      plain_("plain", Arguments("plain", {"--listen", Socket("plain")}), folder_ + "/plain.log"),
      tls_("tls", Arguments("tls", {"--cert", certificate, "--key", key}), folder_ + "/tls.log") {}

std::vector<std::string> Fleet::Arguments(const std::string& server, std::vector<std::string> more) const {
  const std::string listen = server == "steady" ? Socket(server) : Loopback("0");
  std::vector<std::string> arguments = {program_, "--listen",    listen, "--admin", Socket(server + ".admin"),
                                        "--leaf", Socket("leaf")};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

absl::Status Fleet::Start() {
  for (ServerProcess* server : {&leaf_, &steady_, &plain_, &tls_}) {
    if (absl::Status started = server->Start(); !started.ok()) return started;
  }
  return absl::OkStatus();
}

absl::Status Fleet::Disturb(Rng& rng) {
  const uint64_t drawn = rng.Below(4);
  if (drawn < 2) return Restart(rng.Below(2) == 0 ? plain_ : tls_, drawn == 0);
  const std::string servers[] = {"steady", "plain", "tls"};
  const std::string& server = servers[rng.Below(std::size(servers))];
  return Switch(server, kConfigs[rng.Below(std::size(kConfigs))], true);
}

absl::Status Fleet::Switch(const std::string& server, const std::string& config, bool must) {
  Channel channel(&client_, Socket(server + ".admin"));
  Context ctx(kMaxTestWait);
  admin::v1::SwitchRequest request;
  admin::v1::SwitchReply reply;
  request.set_config(config);
  const absl::Status status = admin::v1::Admin::Stub(&channel).Switch(ctx, request, &reply);
  ++events_.switches;
  if (status.ok() || !must) return absl::OkStatus();
  return absl::InternalError(absl::StrCat(server, " does not switch to ", config, ": ", status.ToString()));
}

absl::Status Fleet::Restart(ServerProcess& server, bool kill) {
  ++(kill ? events_.kills : events_.terminations);
  if (kill) {
    server.Kill();
  } else if (absl::Status ended = server.Terminate(kMaxTestWait); !ended.ok()) {
    return ended;
  }
  return server.Start();
}

absl::Status Fleet::CheckAllRun() {
  for (ServerProcess* server : {&leaf_, &steady_, &plain_, &tls_}) {
    if (absl::Status runs = server->CheckRuns(); !runs.ok()) return runs;
  }
  return absl::OkStatus();
}

absl::Status Fleet::AwaitRest() {
  Channel channel(&client_, Socket("steady.admin"));
  admin::v1::GetStatusReply reply;
  for (const Deadline until = Deadline::In(kMaxTestWait); !until.Expired(); poll(nullptr, 0, 20)) {
    Context ctx(kMaxTestWait);
    if (absl::Status got = admin::v1::Admin::Stub(&channel).GetStatus(ctx, {}, &reply); !got.ok()) return got;
    if (reply.connections() == 0 && reply.open_calls() == 0 && reply.held_bytes() == 0)
      return absl::OkStatus();
  }
  return absl::DeadlineExceededError(
      absl::StrCat("without clients the steady server has ", reply.connections(), " connections and ",
                   reply.open_calls(), " calls, and holds ", reply.held_bytes(), " bytes"));
}

absl::Status Fleet::Stop() {
  absl::Status all;
  for (ServerProcess* server : {&tls_, &plain_, &steady_, &leaf_})
    all.Update(server->Terminate(kMaxTestWait));
  return all;
}

}  // namespace curtail::soak
