// SPDX-License-Identifier: Apache-2.0
//
// The social network with other ways to be called. Takes the command line of `social --service NAME`, so that a topology
// starts it instead.
#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_split.h"
#include "bench/social_peer/stacks.h"
#include "curtail/base/strings.h"

namespace curtail::social {
std::vector<HostedService> HostedServices();
}

namespace curtail::bench {
namespace {

// The host gets the rest.
struct CommandLine {
  CommandLine(int argc, char** argv) {
    for (int i = 1; i < argc; ++i) {
      const std::string_view flag = argv[i];
      const std::string value = i + 1 < argc ? argv[i + 1] : "";
      if (flag == "--stack") {
        stack = value, ++i;
      } else if (flag == "--service") {
        service = value, ++i;
      } else if (flag == "--listen") {
        listen = value, ++i;
      } else if (flag == "--peer") {
        peers.push_back(value), ++i;
      } else {
        rest.emplace_back(flag);
      }
    }
  }

  std::string stack, service, listen;
  std::vector<std::string> peers;  // NAME=ADDRESS,ADDRESS
  std::vector<std::string> rest;
};

// The full name of a service's proto, which is "curtail.social.UrlShorten" for "url-shorten".
std::string ProtoName(const std::string& service) {
  std::string proto = "curtail.social.";
  if (service == "direct-message") return proto + "DirectMessaging";
  for (size_t i = 0; i < service.size(); ++i) {
    if (service[i] == '-') continue;
    const bool first = i == 0 || service[i - 1] == '-';
    proto.push_back(first ? static_cast<char>(service[i] - 'a' + 'A') : service[i]);
  }
  return proto;
}

// A thread a call is for synchronous models.
constexpr const char* kThreadsConfig = "SDB1-16";

// The services of one way, and the words by which the host serves.
HostProgram ProgramOf(const CommandLine& line, std::vector<std::string>* words) {
  const bool grpc = line.stack == "grpc";
  HostProgram program{
      .name = "social_peer",
      .title = "One service of the social network, called by --stack grpc or threads.",
      .examples = "Examples:\n  social_peer --stack grpc --service unique-id --listen 127.0.0.1:7000",
      .services = {}};
  for (const std::string& peer : line.peers) {
    const std::vector<std::string> named = absl::StrSplit(peer, absl::MaxSplits('=', 1));
    std::vector<std::string> addresses = absl::StrSplit(named.back(), ',');
    if (addresses.size() > 1) {
      words->insert(words->end(), {"--instances", Join(named.front(), "=", addresses.size())});
    }
    const auto called = grpc ? CalledByGrpc : CalledByThreads;
    program.services.push_back(called(named.front(), ProtoName(named.front()), std::move(addresses)));
  }
  for (HostedService& service : social::HostedServices()) {
    if (service.name != line.service) continue;
    program.services.push_back(grpc ? ServedByGrpc(std::move(service), line.listen)
                                    : ServedByThreads(std::move(service)));
  }
  if (!grpc && std::find(line.rest.begin(), line.rest.end(), "--config") == line.rest.end()) {
    words->insert(words->end(), {"--config", kThreadsConfig});
  }
  // Beside grpc++ the host serves at an address of its own, which nobody calls.
  words->insert(words->end(), {"--listen", grpc ? "127.0.0.1:0" : line.listen});
  if (line.peers.empty()) {
    words->insert(words->end(), {"--service", line.service});
  } else {
    words->push_back("--monolith");
  }
  return program;
}

int Main(int argc, char** argv) {
  const CommandLine line(argc, argv);
  if (line.stack != "grpc" && line.stack != "threads") {
    std::cerr << "social_peer: --stack grpc or --stack threads\n";
    return 104;
  }
  if (line.stack == "grpc")
    setenv("MALLOC_ARENA_MAX", "16", /*overwrite=*/0);  // glibc's own; the host lowers it
  std::vector<std::string> words = {argv[0]};
  const HostProgram program = ProgramOf(line, &words);
  words.insert(words.end(), line.rest.begin(), line.rest.end());
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  return HostMain(static_cast<int>(pointers.size()), pointers.data(), program);
}

}  // namespace
}  // namespace curtail::bench

int main(int argc, char** argv) { return curtail::bench::Main(argc, argv); }
