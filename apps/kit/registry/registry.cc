// SPDX-License-Identifier: Apache-2.0
#include "apps/kit/registry/registry.h"

#include <openssl/crypto.h>

#include <chrono>
#include <map>
#include <utility>
#include <vector>

#include "apps/kit/data/data.h"
#include "apps/kit/data/secrets.h"
#include "apps/kit/jobs/finisher.h"
#include "apps/kit/wall_clock.h"
#include "curtail/base/clock.h"
#include "curtail/base/mutex.h"
#include "curtail/base/strings.h"
#include "curtail/rpc/context.h"
#include "curtail/rpc/coroutine.h"

namespace curtail::apps {
namespace {

constexpr char kRegistryName[] = "service-discovery";
constexpr Nanos kLease = std::chrono::seconds(3), kRenewal = std::chrono::seconds(1);
constexpr Nanos kAge = std::chrono::milliseconds(200);       // of an answer
constexpr Nanos kPatience = std::chrono::milliseconds(900);  // of a call of an instance
constexpr int64_t kMostAgeS = 60;                            // of a registration, or of one from the future
constexpr size_t kMostInstances = 10'000, kMostNameBytes = 64, kMostAddressBytes = 256;

// HMAC-SHA-256 over what an instance says.
std::string ProofOf(std::string_view secret, const Registration& one) {
  return Mac(secret,
             Join("registry ", one.at_s(), " ", one.service().size(), " ", one.service(), one.address()));
}

struct RegistryService final : Registry::CoroutineService {
  explicit RegistryService(std::string s) : secret(std::move(s)) {}

  absl::Status Check(const Registration& request) const {
    const std::string proof = ProofOf(secret, request);
    const bool proven = request.proof().size() == proof.size() &&
                        CRYPTO_memcmp(request.proof().data(), proof.data(), proof.size()) == 0;
    const int64_t now_s = NowMs() / 1000;
    if (proven && request.at_s() >= now_s - kMostAgeS && request.at_s() <= now_s + kMostAgeS)
      return absl::OkStatus();
    return absl::UnauthenticatedError(
        proven ? Join("the clocks of the instance and the registry differ by more than ", kMostAgeS, " s")
               : "the instance has another secret than the registry");
  }

  Coroutine Register(Context&, const Registration& request, Nothing*) override {
    const auto fits = [](const std::string& text, size_t most) {
      return !text.empty() && text.size() <= most;
    };
    if (!fits(request.service(), kMostNameBytes) || !fits(request.address(), kMostAddressBytes))
      co_return absl::InvalidArgumentError(
          Join("a service has 1 to ", kMostNameBytes, " bytes, and an address 1 to ", kMostAddressBytes));
    if (absl::Status checked = Check(request); !checked.ok()) co_return checked;
    const MutexLock lock(mu);
    DropExpired();
    const std::pair key(request.service(), request.address());
    if (instances.size() >= kMostInstances && !instances.contains(key))
      co_return absl::ResourceExhaustedError(Join("there are ", kMostInstances, " instances"));
    instances.insert_or_assign(key, Deadline::In(kLease));
    co_return absl::OkStatus();
  }

  Coroutine Leave(Context&, const Registration& request, Nothing*) override {
    if (absl::Status checked = Check(request); !checked.ok()) co_return checked;
    const MutexLock lock(mu);
    instances.erase({request.service(), request.address()});
    co_return absl::OkStatus();
  }

  Coroutine List(Context&, const RegistryQuery& request, RegisteredServices* reply) override {
    const MutexLock lock(mu);
    DropExpired();
    for (const auto& [key, lease] : instances) {
      const auto& [service, address] = key;
      if (!request.service().empty() && request.service() != service) continue;
      if (reply->services().empty() || reply->services().rbegin()->service() != service)
        reply->add_services()->set_service(service);
      reply->mutable_services()->rbegin()->add_addresses(address);
    }
    co_return absl::OkStatus();
  }

  void DropExpired() CURTAIL_REQUIRES(mu) {
    std::erase_if(instances, [](const auto& one) { return one.second.Expired(); });
  }

  std::vector<DeclaredPath> Paths() const override { return {{"Register", {}}, {"Leave", {}}, {"List", {}}}; }

  const std::string secret;
  Mutex mu;
  // By service and address: until when it is listed.
  std::map<std::pair<std::string, std::string>, Deadline> instances CURTAIL_GUARDED_BY(mu);
};

// The addresses of this process, which register as instances of a service.
class Instances {
 public:
  Instances(Env& env, std::string service, std::string secret)
      : env_(env),
        registry_(env.Stub<Registry>(kRegistryName)),
        service_(std::move(service)),
        secret_(std::move(secret)),
        renewing_([this](auto) { return ForEach(&Registry::Stub::Register); }, kRenewal) {
    env.WhileServing([] {},
                     [this] { ForEach(&Registry::Stub::Leave).IgnoreError(); });  // after the last renewal
    renewing_.WorkWhileServing(env);
  }

 private:
  using Call = absl::Status (Registry::Stub::*)(Context&, const Registration&, Nothing*,
                                                ReplyMetadata*) const;

  absl::Status ForEach(Call call) {
    absl::Status status;
    for (const std::string& address : env_.addresses()) {
      Nothing ignored;
      Context ctx(kPatience);
      status.Update((registry_.*call)(ctx, RegistrationOf(secret_, service_, address), &ignored,
                                      /*metadata=*/nullptr));
    }
    return status;
  }

  Env& env_;
  const Registry::Stub registry_;
  const std::string service_, secret_;
  Finisher renewing_;
};

class RegistryResolver final : public Resolver {
 public:
  RegistryResolver(Channel* registry, std::string service)
      : registry_(registry), service_(std::move(service)) {}

  absl::StatusOr<std::vector<Address>> Resolve() override {
    RegistryQuery query;
    query.set_service(service_);
    RegisteredServices found;
    Context ctx(kPatience);
    if (absl::Status status = registry_.List(ctx, query, &found); !status.ok()) return status;
    std::vector<Address> all;
    for (const RegisteredService& one : found.services()) {
      for (const std::string& text : one.addresses()) {
        const absl::StatusOr<Address> address = Address::Resolve(text);
        if (address.ok()) all.push_back(*address);
      }
    }
    if (all.empty()) return absl::UnavailableError(Join("no instance of ", service_, " is registered"));
    return all;
  }
  Nanos max_age() const override { return kAge; }

 private:
  const Registry::Stub registry_;
  const std::string service_;
};

}  // namespace

HostedService HostedRegistry(const std::string& application) {
  const auto options = std::make_shared<DataOptions>(DataOptions{.application = application});
  return {.name = kRegistryName,
          .flags = [options](Flags& flags) { AddDataFlags(flags, options.get()); },
          .make = [options](Env&) -> MadeService {
            absl::StatusOr<std::string> secret = TokenSecret(*options);
            if (!secret.ok()) return secret.status();
            return std::make_unique<RegistryService>(*std::move(secret));
          }};
}

Registration RegistrationOf(std::string_view secret, const std::string& service, const std::string& address) {
  Registration one;
  one.set_service(service), one.set_address(address);
  one.set_at_s(NowMs() / 1000);
  one.set_proof(ProofOf(secret, one));
  return one;
}

void RegisterWhileServing(Env& env, const std::string& service, std::string secret) {
  env.Keep(std::make_unique<Instances>(env, service, std::move(secret)));
}

std::shared_ptr<Resolver> FollowRegistry(Channel* registry, std::string service) {
  return std::make_shared<RegistryResolver>(registry, std::move(service));
}

}  // namespace curtail::apps
