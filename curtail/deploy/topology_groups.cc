// SPDX-License-Identifier: Apache-2.0
//
// DESIGN. A group becomes one service, text+count, with what its members have. What one process cannot have twice must be
// the same for all that have it: a config, a flag's value, a callee's link. Its callers call it by the members' names. A
// member has one instance, as the services of a process find one of each other.
#include <algorithm>
#include <ranges>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "curtail/deploy/internal/command_flags.h"
#include "curtail/deploy/topology.h"

namespace curtail::deploy {
namespace {

// Makes one service of some. A method that meets what cannot be in one process keeps the first such problem.
class GroupBuilder {
 public:
  GroupBuilder(const std::vector<const ServiceSpec*>& members, std::string name) : members_(members) {
    whole_ = *members.front();
    whole_.name = std::move(name);
    whole_.calls.clear(), whole_.links.clear(), whole_.variants.clear(), whole_.listen.clear();
    whole_.config.clear(), whole_.policy.clear(), whole_.profile.clear();
    whole_.cpu = whole_.memory_mib = 0;
    whole_.scales = false;
  }

  // Errors: FAILED_PRECONDITION.
  absl::StatusOr<ServiceSpec> Build() && {
    for (const ServiceSpec* member : members_) {
      CheckAlone(*member);
      AddFlags(*member);
      AddCalls(*member);
      AddModel(*member);
      AddPlace(*member);
      whole_.entry |= member->entry;
      whole_.secrets.insert(member->secrets.begin(), member->secrets.end());
      if (whole_.keeps.empty()) whole_.keeps = member->keeps;
    }
    if (!problem_.empty()) return absl::FailedPreconditionError(problem_);
    whole_.run = {members_.front()->run.front(), "--service", absl::StrJoin(services_, ",")};
    for (const auto& flag : flags_) AddFlag(flag, &whole_.run);
    return std::move(whole_);
  }

 private:
  void Refuse(const std::string& why) {
    if (problem_.empty()) problem_ = why;
  }

  bool IsMember(const std::string& service) const {
    return std::ranges::any_of(members_, [&](const ServiceSpec* member) { return member->name == service; });
  }

  void CheckAlone(const ServiceSpec& member) {
    const ServiceSpec& first = *members_.front();
    if (!member.external.empty()) {
      Refuse(absl::StrCat(member.name, " runs elsewhere already"));
    } else if (!member.IsHosted()) {
      Refuse(absl::StrCat(member.name, " is not a curtail service"));
    } else if (member.instances() > 1) {
      Refuse(absl::StrCat(member.name, " has ", member.instances(),
                          " instances, and a process has one of each service"));
    } else if (member.run.front() != first.run.front()) {
      Refuse(absl::StrCat(member.name, " is another program than ", first.name, ": ", member.run.front()));
    }
  }

  void AddFlags(const ServiceSpec& member) {
    bool named = false;
    for (const auto& [flag, values] : FlagsOf(member.run)) {
      if (flag == "--service") {
        for (std::string_view value : values)
          services_.emplace_back(value.substr(value.starts_with('=') ? 1 : 0));
        named = true;
      } else if (!flag.starts_with("--")) {
        Refuse(absl::StrCat("the command of ", member.name, " has the word ", flag));
      } else if (flag != "--shard") {  // of one
        const auto known = std::ranges::find(flags_, flag, &FlagValues::value_type::first);
        if (known == flags_.end()) {
          flags_.emplace_back(flag, values);
        } else if (known->second != values) {
          Refuse(absl::StrCat("they have ", flag, " ", absl::StrJoin(known->second, ","), " and ",
                              absl::StrJoin(values, ","), ", and a process has one"));
        }
      }
    }
    if (!named) Refuse(absl::StrCat("the command of ", member.name, " has no --service"));
  }

  void AddCalls(const ServiceSpec& member) {
    for (const Wiring& call : member.calls) {
      if (IsMember(call.service)) continue;
      const auto found = member.links.find(call.name());
      const std::string link = found == member.links.end() ? "" : found->second;
      const auto known = std::ranges::find(whole_.calls, call.name(), &Wiring::name);
      if (known == whole_.calls.end()) {
        whole_.calls.push_back(call);
        if (!link.empty()) whole_.links[call.name()] = link;
        continue;
      }
      const auto had = whole_.links.find(call.name());
      if (link != (had == whole_.links.end() ? "" : had->second))
        Refuse(absl::StrCat("not all that call ", call.name(), " have the same link to it"));
      if (known->flag != call.flag || known->own != call.own)
        Refuse(absl::StrCat("not all that call ", call.name(), " are told of it alike"));
    }
  }

  void AddModel(const ServiceSpec& member) {
    if (member.config.empty() && member.policy.empty() && member.profile.empty()) return;
    const bool first = whole_.config.empty() && whole_.policy.empty() && whole_.profile.empty();
    if (first) {
      whole_.config = member.config, whole_.policy = member.policy, whole_.profile = member.profile;
    } else if (whole_.config != member.config || whole_.policy != member.policy ||
               whole_.profile != member.profile) {
      Refuse(absl::StrCat("the config or policy of ", member.name, " differs, and a process has one"));
    }
  }

  void AddPlace(const ServiceSpec& member) {
    if (!member.listen.empty() && !whole_.listen.empty()) Refuse("two of them have `listen`");
    if (whole_.listen.empty()) whole_.listen = member.listen;
    if (member.cpus != members_.front()->cpus) Refuse("their `cpus` differ");
    if ((member.cpu > 0) != (members_.front()->cpu > 0))
      Refuse("some have a limit of `cpu`, and some have none");
    whole_.cpu += member.cpu;
    whole_.memory_mib += member.memory_mib;
  }

  const std::vector<const ServiceSpec*>& members_;
  ServiceSpec whole_;
  std::vector<std::string> services_;  // as --service names them
  FlagValues flags_;
  std::string problem_;
};

}  // namespace

absl::Status Topology::Group(std::string_view services_text) {
  const std::string text(services_text);
  const std::vector<std::string> names = absl::StrSplit(text, ',');
  const auto refuse = [&](const std::string& why) {
    std::vector<std::string> there;
    for (const ServiceSpec& s : services) {
      if (s.IsHosted()) there.push_back(s.name);
    }
    return absl::InvalidArgumentError(
        absl::StrCat("--group ", text, ": ", why, "; there are ", absl::StrJoin(there, ", ")));
  };
  if (names.size() < 2) return refuse("write two services or more, SERVICE,SERVICE");
  std::vector<const ServiceSpec*> members;
  for (const std::string& name : names) {
    const ServiceSpec* const member = Find(name);
    if (member == nullptr) return refuse(absl::StrCat(application, " has no service ", name));
    if (std::ranges::count(names, name) > 1) return refuse(absl::StrCat("it names ", name, " twice"));
    members.push_back(member);
  }
  absl::StatusOr<ServiceSpec> whole = GroupBuilder(members, absl::StrJoin(names, "+")).Build();
  if (!whole.ok()) {
    return absl::FailedPreconditionError(
        absl::StrCat("--group ", text, " cannot be one process: ", whole.status().message()));
  }
  const auto in_it = [&](const std::string& name) { return std::ranges::count(names, name) > 0; };
  if (whole->entry) {  // clients call it: only what others call, too, is reached there
    const auto called = [&](const std::string& name) {
      return std::ranges::any_of(services, [&](const ServiceSpec& s) {
        return !in_it(s.name) && std::ranges::count(s.calls, name, &Wiring::service) > 0;
      });
    };
    for (const std::string& name : names)
      if (Find(name)->entry || called(name)) whole->run.insert(whole->run.end(), {"--outside", name});
  }
  // Where the first of them is, so that Order() changes little.
  *Find(names.front()) = *whole;
  std::erase_if(services, [&](const ServiceSpec& s) { return in_it(s.name); });
  for (ServiceSpec& s : services) {
    for (Wiring& call : s.calls) {
      if (!in_it(call.service)) continue;
      call.as = call.name();
      call.service = whole->name;
    }
  }
  for (const std::string& name : names) {  // commands may ask for them
    variables[name + ".shards"] = variables[name + ".replicas"] = "1";
  }
  Order();
  return Check();
}

}  // namespace curtail::deploy
