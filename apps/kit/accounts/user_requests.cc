// SPDX-License-Identifier: Apache-2.0
#include "apps/kit/accounts/user_requests.h"

#include <algorithm>
#include <utility>

#include "apps/kit/data/folder.h"
#include "curtail/base/strings.h"

namespace curtail::apps {
namespace {

std::string Listed(const std::vector<std::string_view>& mixes) {
  std::string text;
  for (size_t i = 0; i < mixes.size(); ++i)
    text += Join(i == 0 ? "" : i + 1 < mixes.size() ? ", " : " or ", mixes[i]);
  return text;
}

}  // namespace

absl::StatusOr<ItemChoice> SendersOf(const UserWorkloadOptions& options,
                                     const std::vector<std::string_view>& mixes, size_t count) {
  if (std::ranges::find(mixes, options.mix) == mixes.end())
    return NoSuchValue("mix", options.mix, {mixes.begin(), mixes.end()});
  absl::StatusOr<ItemChoice> senders = ParseItemChoice(options.users, count, options.seed);
  if (senders.ok()) return senders;
  return absl::Status(senders.status().code(), Join("--senders: ", Message(senders.status())));
}

AppRequests UserRequests(std::string service, std::string application, std::vector<std::string_view> mixes,
                         std::function<absl::StatusOr<std::unique_ptr<Workload>>(
                             std::vector<LoadUser> users, const UserWorkloadOptions& options)>
                             make) {
  return {.service = std::move(service),
          .options = {{"mix", Join(Listed(mixes), " [mixed]")},
                      {"senders", "which users send: uniform, zipf:S or skew:S [uniform]"}},
          .make = [=](const RequestOptions& o) -> absl::StatusOr<std::unique_ptr<Workload>> {
            UserWorkloadOptions options;
            options.mix = o.Text("mix", options.mix);
            options.users = o.Text("senders", options.users);
            options.given = o;
            if (const auto senders = SendersOf(options, mixes, 1); !senders.ok()) return senders.status();
            const absl::StatusOr<std::string> folder = DataFolder(application, o.data);
            if (!folder.ok()) return folder.status();
            absl::StatusOr<std::vector<LoadUser>> users = ReadLoadUsers(*folder, application);
            if (!users.ok()) return users.status();
            options.folder = *folder;
            return make(*std::move(users), options);
          }};
}

AppRequests MixedRequests(std::string service, std::string application, std::span<const NamedMix> mixes,
                          std::function<absl::StatusOr<Kinds>(const std::vector<LoadUser>& users,
                                                              const UserWorkloadOptions& options)>
                              kinds) {
  std::vector<std::string_view> names;
  for (const NamedMix& mix : mixes) names.push_back(mix.name);
  const auto make = [=, kinds = std::move(kinds)](
                        std::vector<LoadUser> users,
                        const UserWorkloadOptions& options) -> absl::StatusOr<std::unique_ptr<Workload>> {
    absl::StatusOr<ItemChoice> senders = SendersOf(options, names, users.size());
    if (!senders.ok()) return senders.status();
    const absl::StatusOr<Kinds> made = kinds(users, options);
    if (!made.ok()) return made.status();
    MixedWorkload::Mix mix;
    for (const auto& [kind, weight] : WeightsOf(*std::ranges::find(mixes, options.mix, &NamedMix::name)))
      mix.emplace_back(made->at(kind), weight);
    return std::make_unique<MixedWorkload>(std::move(mix), options.seed, *std::move(senders));
  };
  return UserRequests(std::move(service), std::move(application), names, make);
}

}  // namespace curtail::apps
