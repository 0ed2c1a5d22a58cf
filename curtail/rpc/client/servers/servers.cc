// SPDX-License-Identifier: Apache-2.0
//
// DESIGN. A call needs a list of servers that no other thread frees meanwhile. Each poller has a place with a reference
// to the list, which a thread of that poller brings up to date when it makes a call. So threads of different pollers
// share nothing on the way of a call but counters, and a call takes one lock that mostly no other thread wants.
//
//  N1  list_ changes only under mu_, and version_ with it. A list does not change. The subchannel of an address is the
//      same in all lists from its first to its last appearance, so a change of the list breaks no connection to an
//      address that stays.
//  N2  A place is brought up to date under its own mutex, ahead of a choice, if version_ has moved. The thread that does
//      so retires, after it has left the mutex, the connections on its poller to addresses that are gone: they take no
//      new calls, and close after their last.
//  N3  Only threads that use a poller retire its connections: the end of a call may have to be on them (Client::Poll()).
//      A thread may have chosen a subchannel just before that, and connect afterwards; the subchannel's destructor
//      closes what is left, and by N2 its last reference is such a thread's, or the channel's end.
//  N4  A call on a connection that is being retired either began before, and ends normally, or fails as one that no
//      server has seen, and is made again.
//  N5  No mutex of these is held while a connection is kicked or the resolver is asked.
//  N6  Calls count their outcomes in the backend; the one that finds an interval over ends it (outlier_detection.cc). A
//      server that does not serve gets no calls, so nothing would read its news: each kHealthPeriod a call looks, and
//      so does each that finds no server (health_watch.cc).
//  N7  Lost() and Unreachable() may be called under a slot's mutex. They take mu_ and the mutex of NameLookups, under
//      which no thread takes a slot's.
//  N8  A server of the list is noticed when it fails, one that the list lacks is not. So after an answer that lacks some
//      (PartialResolver), and where answers grow old (Resolver::max_age()), the next lookup is due without a failure.
//  N9  asked_ keeps failures from planning a lookup that is planned. If the system has no thread for lookups, asked_ falls
//      again, and the next failure plans one.
//
// A place whose poller makes no more calls keeps its list, and connections to servers that are gone stay open until
// these close them. No thread watches it that could do better.
#include "curtail/rpc/client/servers/servers.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "curtail/base/mix.h"
#include "curtail/base/strings.h"
#include "curtail/rpc/client/resolver/target.h"

namespace curtail::internal {
namespace {

// Servers that one call tries to find a connection that stands.
constexpr int kLooks = 4;
// Choices for a call that has been at some servers.
constexpr int kChoices = 16;
// How often calls that find a server ask for the health of others.
constexpr Nanos kHealthPeriod = std::chrono::seconds(1);

bool SameAddresses(const ServerList& list, const std::vector<Address>& addresses) {
  if (list.members.size() != addresses.size()) return false;
  for (const auto& member : list.members) {
    const auto same = [&](const Address& address) { return address.ToString() == member->shared()->name; };
    if (std::none_of(addresses.begin(), addresses.end(), same)) return false;
  }
  return true;
}

}  // namespace

// Tells the channel's servers, which may be gone, of failures.
class Servers::Member final : public SharedBackend {
 public:
  Member(std::string name, std::weak_ptr<Servers> servers)
      : SharedBackend(std::move(name)), servers_(std::move(servers)) {}
  void Lost() override {
    load.Forget();
    if (const std::shared_ptr<Servers> servers = servers_.lock()) servers->Lost();
  }
  void Unreachable() override {
    if (const std::shared_ptr<Servers> servers = servers_.lock()) servers->Unreachable(*this);
  }
  void FailedInARow() override {
    if (const std::shared_ptr<Servers> servers = servers_.lock()) servers->FailedInARow(*this);
  }

 private:
  const std::weak_ptr<Servers> servers_;
};

Servers::Servers(std::shared_ptr<const ConnectSettings> settings, std::shared_ptr<Resolver> resolver,
                 BalancerOptions balancer, NameLookups* lookups)
    : settings_(std::move(settings)),
      resolver_(std::move(resolver)),
      partial_(dynamic_cast<PartialResolver*>(resolver_.get())),
      balancer_(std::move(balancer)),
      observes_(settings_->observation.outcomes || settings_->observation.health_service.has_value()),
      lookups_(lookups) {}

Servers::~Servers() = default;

std::shared_ptr<const ServerList> Servers::Current() {
  MutexLock lock(mu_);
  return list_;
}

std::shared_ptr<const ServerList> Servers::MakeList(const std::vector<Address>& addresses,
                                                    const ServerList* before) {
  std::unordered_map<std::string, std::shared_ptr<Subchannel>> known;
  std::string last;
  if (before != nullptr) {
    for (const auto& member : before->members) known.emplace(member->shared()->name, member);
    last = before->members[before->last.load(std::memory_order_relaxed)]->shared()->name;
  }
  auto list = std::make_shared<ServerList>();
  Backends backends;
  for (const Address& address : addresses) {
    const std::string name = address.ToString();
    if (last == name) list->last.store(list->members.size(), std::memory_order_relaxed);
    std::shared_ptr<Subchannel>& subchannel = known[name];
    if (subchannel == nullptr) {
      subchannel =
          std::make_shared<Subchannel>(settings_, address, std::make_shared<Member>(name, weak_from_this()));
    }
    list->members.push_back(subchannel);
    backends.push_back(subchannel->shared());
  }
  // Clients that start together begin with different servers.
  list->sequence.store(Mix(static_cast<uint64_t>(Now().time_since_epoch().count())) % 65536,
                       std::memory_order_relaxed);
  list->balancer = *MakeBalancer(balancer_, std::move(backends));
  return list;
}

void Servers::LookUp() {
  if (closed_.load(std::memory_order_acquire)) return;
  {
    MutexLock lock(mu_);
    if (list_ != nullptr && Now() < next_lookup_) return LookUpAt(next_lookup_);
  }
  asked_.store(false, std::memory_order_release);  // a failure from here on asks again
  bool complete = true;
  absl::StatusOr<std::vector<Address>> answer =
      partial_ != nullptr ? partial_->ResolveParts(&complete) : resolver_->Resolve();
  if (answer.ok() && answer->empty()) {
    answer = absl::UnavailableError(Join(settings_->target, ": its resolver knows no address"));
  }
  const TimePoint now = Now();
  const ChannelOptions& options = settings_->options;
  const Nanos max_age = resolver_->max_age();
  std::shared_ptr<const ServerList> before;  // ends outside of the mutex (N5)
  MutexLock lock(mu_);
  if (!answer.ok()) {
    next_lookup_ = now + backoff_.Next(options.initial_backoff, options.max_backoff, now);
    if (max_age > Nanos::zero()) LookUpAt(next_lookup_);  // N8
    if (list_ == nullptr) wrong_ = Apart(answer.status());
    return;
  }
  Nanos wait = max_age > Nanos::zero() ? max_age : options.min_resolve_interval;
  if (complete) {
    backoff_.Reset();
  } else {
    wait = std::max(wait, backoff_.Next(options.initial_backoff, options.max_backoff, now));
  }
  next_lookup_ = now + wait;
  if (!complete || max_age > Nanos::zero()) LookUpAt(next_lookup_);  // N8
  std::vector<Address>& addresses = *answer;
  // Duplicates would be one subchannel twice.
  for (size_t i = 0; i < addresses.size(); ++i) {
    const auto same = [&](const Address& other) { return other.ToString() == addresses[i].ToString(); };
    const auto rest = addresses.begin() + static_cast<std::ptrdiff_t>(i) + 1;
    addresses.erase(std::remove_if(rest, addresses.end(), same), addresses.end());
  }
  if (addresses.size() > Resolver::kMaxAddresses) addresses.resize(Resolver::kMaxAddresses);
  if (list_ != nullptr && SameAddresses(*list_, addresses)) return;
  before = std::exchange(list_, MakeList(addresses, list_.get()));
  version_.fetch_add(1, std::memory_order_release);  // N1
}

void Servers::LookUpAt(TimePoint when) {
  if (!lookups_->At(when, weak_from_this())) asked_.store(false, std::memory_order_release);
}

void Servers::Lost() {
  if (!resolver_->Changes() || closed_.load(std::memory_order_acquire)) return;
  if (asked_.exchange(true, std::memory_order_acq_rel)) return;
  TimePoint when;
  {
    MutexLock lock(mu_);
    when = next_lookup_;
  }
  LookUpAt(when);
}

void Servers::Unreachable(const Backend& backend) {
  {
    MutexLock lock(mu_);  // a reference of its own could be the last, whose end takes a slot's mutex
    if (list_ != nullptr) {
      const size_t last = list_->last.load(std::memory_order_relaxed);
      if (list_->members[last]->shared().get() == &backend)
        list_->last.store((last + 1) % list_->members.size(), std::memory_order_relaxed);
    }
  }
  Lost();
}

absl::Status Servers::Known(TimePoint now) {
  if (version_.load(std::memory_order_acquire) > 0) return absl::OkStatus();
  {
    MutexLock lock(mu_);
    if (now < next_lookup_ && !wrong_.ok()) return Apart(wrong_);
  }
  LookUp();
  MutexLock lock(mu_);
  return list_ != nullptr ? absl::OkStatus() : Apart(wrong_);
}

std::shared_ptr<const ServerList> Servers::Refresh(Place& place) {
  const uint64_t version = version_.load(std::memory_order_acquire);
  if (place.version == version) [[likely]]
    return nullptr;
  place.version = version;  // a later list may be taken, and taken again
  return std::exchange(place.list, Current());
}

Servers::Chosen Servers::Choose(Place& place, uint32_t poller, TimePoint now,
                                const wire::Metadata& metadata) {
  std::shared_ptr<const ServerList> before;
  std::shared_ptr<const ServerList> after;
  Chosen chosen;
  {
    MutexLock lock(place.mu);
    before = Refresh(place);
    const ServerList& list = *place.list;
    if (before != nullptr) [[unlikely]]
      after = place.list;
    Choice choice;
    choice.now = now;
    choice.sequence = list.sequence.fetch_add(1, std::memory_order_relaxed);
    choice.random = Mix(choice.sequence);
    choice.last = list.last.load(std::memory_order_relaxed);
    if (list.balancer->UsesKey()) {
      if (const auto key = metadata.Find(balancer_.hash_key)) choice.key = HashOf(*key);
    }
    const size_t index = list.balancer->Choose(choice);
    if (index != Balancer::kNone) {
      if (index != choice.last) list.last.store(index, std::memory_order_relaxed);
      chosen = {list.members[index], !list.balancer->PrefersConnected()};
    }
  }
  if (before == nullptr) [[likely]]
    return chosen;
  for (const auto& member : before->members) {  // N2
    const auto& now_members = after->members;
    if (std::find(now_members.begin(), now_members.end(), member) == now_members.end())
      member->Retire(poller);
  }
  return chosen;
}

Servers::Connected Servers::Acquire(const std::shared_ptr<Poller>& poller, TimePoint now,
                                    const wire::Metadata& metadata, UsedServers used) {
  if (version_.load(std::memory_order_acquire) == 0) [[unlikely]] {
    if (absl::Status known = Known(now); !known.ok()) return known;
  }
  const uint32_t id = poller->id();
  Place* const place = places_.For(id, [] { return std::make_unique<Place>(); });
  if (place == nullptr) return absl::ResourceExhaustedError("too many event loops in this process");
  if (observes_) [[unlikely]]
    Observe(poller, now);
  if (!used.empty()) [[unlikely]] {
    if (Connected other = Find(*place, poller, now, metadata, used); other.ok()) return other;
  }
  Connected connection = Find(*place, poller, now, metadata);
  if (connection.ok() || !absl::IsUnavailable(connection.status()) || !observes_) [[likely]]
    return connection;
  return LookAtHealth(poller, now) ? Find(*place, poller, now, metadata) : connection;
}

Servers::Connected Servers::Find(Place& place, const std::shared_ptr<Poller>& poller, TimePoint now,
                                 const wire::Metadata& metadata, UsedServers used) {
  const uint32_t id = poller->id();
  std::shared_ptr<ClientConnection> connecting;
  int looks = 0;
  int choices = 0;
  for (size_t failures = 0; looks < kLooks && failures <= Resolver::kMaxAddresses;) {
    const Chosen chosen = Choose(place, id, now, metadata);
    if (chosen.subchannel == nullptr) break;
    if (!used.empty() && ++choices > kChoices) break;
    if (std::find(used.begin(), used.end(), chosen.subchannel->shared().get()) != used.end()) continue;
    Connected connection = chosen.subchannel->Acquire(poller, now);
    if (!connection.ok()) {
      if (!absl::IsUnavailable(connection.status())) return connection;
      ++failures;  // it is down now
      continue;
    }
    if (chosen.waits || (*connection)->ready()) return connection;
    if (connecting == nullptr) connecting = *std::move(connection);
    ++looks;
  }
  if (connecting != nullptr) return connecting;
  return NoneUp(id, now);
}

bool Servers::Due(std::atomic<int64_t>* next, TimePoint now, Nanos period) {
  int64_t when = next->load(std::memory_order_relaxed);
  return when <= now.time_since_epoch().count() &&
         next->compare_exchange_strong(when, (now + period).time_since_epoch().count(),
                                       std::memory_order_relaxed);
}

void Servers::Observe(const std::shared_ptr<Poller>& poller, TimePoint now) {
  if (balancer_.outliers && Due(&next_sweep_, now, balancer_.outliers->interval)) Sweep(now);
  if (settings_->observation.health_service && Due(&next_health_look_, now, kHealthPeriod))
    LookAtHealth(poller, now);
}

void Servers::Sweep(TimePoint now) {
  const Backends backends = AllBackends();
  MutexLock lock(sweep_mu_);
  if (now < swept_at_) return;
  const auto intervals = static_cast<uint64_t>((now - swept_at_) / balancer_.outliers->interval);
  swept_at_ = now;
  SweepOutliers(*balancer_.outliers, backends, now, intervals,
                Mix(static_cast<uint64_t>(now.time_since_epoch().count())));
}

Backends Servers::AllBackends() {
  Backends backends;
  for (const auto& member : Current()->members) backends.push_back(member->shared());
  return backends;
}

void Servers::FailedInARow(Backend& backend) {
  const Backends backends = AllBackends();
  const TimePoint now = Now();
  MutexLock lock(sweep_mu_);
  EjectForFailures(*balancer_.outliers, backends, backend, now,
                   static_cast<uint64_t>(now.time_since_epoch().count()));
}

bool Servers::LookAtHealth(const std::shared_ptr<Poller>& poller, TimePoint now) {
  if (!settings_->observation.health_service) return false;
  bool any = false;
  for (const auto& member : Current()->members) {
    if (member->shared()->Serves()) continue;
    any = true;
    member->LookAtHealth(poller, now);
  }
  return any;
}

absl::Status Servers::NoneUp(uint32_t poller, TimePoint now) {
  absl::Status why;
  for (const auto& member : Current()->members) {
    const Backend& backend = *member->shared();
    why.Update(member->LastError(poller));
    if (!backend.Serves())
      why.Update(absl::UnavailableError(Join(backend.name, ": says that it does not serve")));
    if (backend.outliers.Ejected(now))
      why.Update(absl::UnavailableError(Join(backend.name, ": left out, as too many of its calls failed")));
  }
  return absl::UnavailableError(
      Join(why.ok() ? Join(settings_->target, ": no server can be reached") : std::string(Message(why)),
           " (not tried again yet)"));
}

TimePoint Servers::NextAttempt() {
  MutexLock lock(mu_);
  if (list_ == nullptr) return next_lookup_;
  TimePoint first = TimePoint::max();
  for (const auto& member : list_->members) {
    const Backend& backend = *member->shared();
    const Nanos up_at(std::max(backend.down_until.load(std::memory_order_relaxed),
                               backend.outliers.until.load(std::memory_order_relaxed)));
    first = std::min(first, TimePoint(up_at));
  }
  return first;
}

void Servers::Close() {
  closed_.store(true, std::memory_order_release);
  std::vector<std::shared_ptr<const ServerList>> lists = {Current()};
  places_.ForEach([&](Place& place) {
    MutexLock lock(place.mu);
    lists.push_back(place.list);
  });
  for (const auto& list : lists) {
    if (list == nullptr) continue;
    for (const auto& member : list->members) member->Abort();
  }
}

bool Servers::Answered() {
  const std::shared_ptr<const ServerList> list = Current();
  return list != nullptr && std::any_of(list->members.begin(), list->members.end(),
                                        [](const auto& member) { return member->Answered(); });
}

}  // namespace curtail::internal
