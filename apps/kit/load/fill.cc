// SPDX-License-Identifier: Apache-2.0
#include "apps/kit/load/fill.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <sstream>

#include "apps/kit/parallel.h"
#include "curtail/base/strings.h"

namespace curtail::apps {

void AddFillFlags(Flags& flags, FillTarget* options) {
  AddTargetFlags(flags, &options->target, "Address of the front end");
  flags.Add("--data", &options->data, "Folder that gets the sessions for load tests");
  flags.Add("--seed", &options->seed, "Of what is generated, passwords included");
  flags.Add("--threads", &options->threads, "Calls at once", {1, 256});
  flags.Add("--timeout", &options->timeout_s, "Seconds a call may take", {0.001, 3600});
  flags.Add("--quiet", &options->quiet, "No progress on stderr");
}

absl::Status ForAll(const FillTarget& options, const std::string& what, uint64_t count,
                    const std::function<absl::Status(uint64_t, Channel&)>& step) {
  const absl::StatusOr<ChannelOptions> channel_options = ChannelOptionsOf(options.target);
  if (!channel_options.ok()) return channel_options.status();
  Progress progress(what, count, options.quiet, what);
  return ForRanges(0, count, options.threads, [&](size_t begin, size_t end) {
    Client client;
    Channel channel(&client, options.target.address, *channel_options);
    for (size_t i = begin; i < end; ++i) {
      if (absl::Status status = step(i, channel); !status.ok()) {
        const bool named =
            Message(status).starts_with(options.target.address);  // a connection's error names it
        const std::string at = named ? "" : Join(" at ", options.target.address);
        return absl::Status(status.code(), Join(what, " ", i, at, ": ", Message(status)));
      }
      progress.Add(1);
    }
    return absl::OkStatus();
  });
}

std::string PasswordOf(uint64_t seed, uint64_t user) { return Join("load-", seed, "-", user); }

absl::Status WriteLoadUsers(const std::string& folder, const std::vector<LoadUser>& users) {
  const std::string path = folder + "/load-users", fresh = path + ".new";
  const int fd = open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd >= 0) close(fd);
  std::ofstream file(fresh);
  for (const LoadUser& user : users) {
    file << user.id << ' ' << user.name << ' ' << user.token;
    for (const std::string& word : user.more) file << ' ' << word;
    file << '\n';
  }
  file.close();
  if (file && std::rename(fresh.c_str(), path.c_str()) == 0) return absl::OkStatus();
  return absl::InternalError(Join(path, " cannot be written"));
}

absl::StatusOr<std::vector<LoadUser>> ReadLoadUsers(const std::string& folder, std::string_view application) {
  const std::string path = folder + "/load-users";
  std::ifstream file(path);
  std::vector<LoadUser> users;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    LoadUser user;
    if (!(words >> user.id >> user.name >> user.token)) break;
    for (std::string word; words >> word;) user.more.push_back(word);
    users.push_back(std::move(user));
  }
  if (!users.empty()) return users;
  return absl::NotFoundError(
      Join(path, " names no users: run ", application, " fill, as curtail up ", application, " does"));
}

}  // namespace curtail::apps
