// SPDX-License-Identifier: Apache-2.0
//
// host.h - the main() of a program that serves: it turns flags into a serving process.
//
//   int main(int argc, char** argv) {
//     return curtail::HostMain(
//         argc, argv, {.name = "shop", .title = "A shop.", .services = {Cart(), Stock()}});
//   }
//
// A program holds the services of an application. A process serves one of them, `shop --service
// cart`, a group of them, `--service cart,stock`, or all of them, `shop --monolith`. Services of
// one process call each other in it (in_process.h). A service is a HostedService: its name, its
// flags, and a function that makes it from an Env, where it finds its peers, its stores and its
// part of the data by name. The host does the rest: signals, health checks, drain, config and
// policy, the admin address, TLS, --memory and --help.
//
// For programs with one service and no flags of their own: server_main.h.
//
// Code: host/host.cc.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "curtail/base/clock.h"
#include "curtail/base/shard.h"
#include "curtail/rpc/channel.h"
#include "curtail/rpc/flags.h"
#include "curtail/rpc/server.h"
#include "curtail/rpc/service.h"

namespace curtail {

struct PolicyKind;  // curtail/adapt/policy_kind.h

// An Env is what surrounds one instance of a service. It outlives the service. Not thread-safe.
class Env {
 public:
  ~Env();
  Env(const Env&) = delete;
  Env& operator=(const Env&) = delete;

  // Channels to the instances of a service, in the topology's order: --peer NAME=ADDR,ADDR.
  // `options` are the first call's for a name. This service calls exactly the services that make()
  // asks for. The process ends with an error after make() if --peer lacks one of them, or names
  // another.
  const std::vector<Channel*>& Channels(std::string_view service, const ChannelOptions& options = {});
  // A typed stub of it: env.Stub<User>("user"). Several instances share the calls by --balancer, or
  // else "least_request"; within one process the first has all. They have the options of the first
  // call for the name. With TLS each certificate names `service`, or ClientTls's server_name.
  // Declared where it is kept: `const User::Stub user = env.Stub<User>("user");`
  template <class Rpc>
  typename Rpc::Stub Stub(std::string_view service) {
    return typename Rpc::Stub(SharedChannel(service));
  }
  // Returns the channel of that stub; null if --peer lacks the service.
  Channel* SharedChannel(std::string_view service);
  // How many instances of it there are, without connecting.
  size_t Count(std::string_view service) const;
  // The addresses of a store: --store NAME=ADDR,ADDR.
  const std::vector<std::string>& Store(std::string_view store) const;
  // Where the process serves, as Server::addresses(). Empty before start() of WhileServing().
  const std::vector<std::string>& addresses() const;
  // Which part of the application's data this instance holds: --shard.
  Shard shard() const;
  // No progress on stderr while it loads: --quiet.
  bool quiet() const;
  // The words of the command line that are not flags; only for programs that take them.
  const std::vector<std::string>& words() const;

  // For work that no request does, such as a queue's. The host calls start() once the process
  // serves, and stop() when it has drained, the last first. start() does not wait; after stop()
  // nothing of the work is left. It may call the peers from threads of its own.
  void WhileServing(std::function<void()> start, std::function<void()> stop);

  // Another gRPC service of this process, beside the one that is made: a page, an older API. Other
  // services call it by a stub of its type and the name of this service.
  void AlsoServe(std::unique_ptr<Service> service);

  // Has the Env own what outlives the service. Destroyed in the opposite order, after the service.
  template <class T>
  T& Keep(std::unique_ptr<T> object) {
    T& kept = *object;
    KeepAlive(std::shared_ptr<void>(std::move(object)));
    return kept;
  }

 private:
  friend class HostBuilder;
  struct Impl;
  explicit Env(std::unique_ptr<Impl> impl);
  void KeepAlive(std::shared_ptr<void> object);

  const std::unique_ptr<Impl> impl_;
};

// A service, or why there is none.
using MadeService = absl::StatusOr<std::unique_ptr<Service>>;

// A HostedService is one service that a program can be.
struct HostedService {
  // As --service, --peer and the topology name it.
  std::string name;
  // The stores whose addresses make() asks for. Each must be given.
  std::vector<std::string> stores = {};
  // Stores of which every instance has one of its own, such as the cache beside a leaf.
  std::vector<std::string> own_stores = {};
  // Adds its flags. Empty: it has none.
  std::function<void(Flags& flags)> flags = nullptr;
  // Makes it, which may take as long as its data takes to load. Errors: printed; the process ends
  // with 104.
  std::function<MadeService(Env& env)> make;
  // How many bytes of data an instance will hold once it serves, found without loading them; the
  // host adds the process itself. Empty: nothing to speak of.
  std::function<absl::StatusOr<uint64_t>(Env& env)> memory = nullptr;
  // Full names of its services that callers outside a process of several reach if --outside names
  // it, such as "media.Files"; empty: all. The others trust their callers.
  std::vector<std::string> outside = {};
};

// A command of the program that serves nothing: `shop generate --out FILE`.
struct HostCommand {
  std::string name;
  std::string help;
  std::string examples = {};  // the end of `shop generate --help`
  std::function<void(Flags& flags)> flags = nullptr;
  // Errors: printed; the process ends with 99 for DATA_LOSS, data that a check found broken, with 1
  // for DEADLINE_EXCEEDED, else with 104.
  std::function<absl::Status()> run;
};

struct HostProgram {
  std::string name;
  std::string title;     // one sentence
  std::string examples;  // the end of --help
  std::vector<HostedService> services;
  std::vector<HostCommand> commands = {};
  // Policies of its own, which --policy takes beside the library's.
  std::vector<const PolicyKind*> policies = {};
  // Each call to a service of the program passes them (interceptor.h), calls within a process too.
  std::vector<ServerInterceptor*> interceptors = {};
};

// The main() of `program`. Serves until SIGTERM or SIGINT, and drains; a second signal ends the
// process. SIGHUP reads TLS keys again. Prints "ready ADDRESS" for each address once it serves.
// Returns the exit code: 0, 104 for a command line, a file or an address that cannot be used, 1
// when a handler did not return.
int HostMain(int argc, char** argv, const HostProgram& program);

namespace internal {

// HostMain() for a program with one service that takes any peers and, if `words`, words that are
// not flags.
int ServeOne(int argc, char** argv, bool words, std::function<MadeService(Env&)> make,
             std::vector<const PolicyKind*> policies, std::vector<ServerInterceptor*> interceptors);

}  // namespace internal
}  // namespace curtail
