// SPDX-License-Identifier: Apache-2.0
//
// config.h - threading models and their pool sizes, as strings: "SIP1", "SDB1-20".
//
// A model is a point on three axes (muTune, section 3): waiting, execution, reception. A config is
// a model with pool sizes, written MODEL network[-workers[-response]]. It parses from and prints to
// exactly that everywhere. "auto" is FIB1 with stand-ins.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace curtail {

enum class Waiting { kSync, kAsync, kFiber };  // how a request waits for its downstream replies
enum class Execution { kInline, kDispatch };   // on the thread that received it, or on a worker
enum class Reception { kBlock, kPoll };        // how a thread waits for network events

struct Model {
  Waiting waiting = Waiting::kSync;
  Execution execution = Execution::kInline;
  Reception reception = Reception::kBlock;
  friend bool operator==(const Model&, const Model&) = default;
};

inline constexpr int kMaxPoolSize = 4096;

struct Config {
  Model model;
  int network = 1;   // threads that receive; in in-line models they run the handlers too
  int workers = 0;   // threads that run handlers; dispatch models only
  int response = 0;  // threads that take downstream replies; async models only
  // "auto": while a handler holds the thread up outside of curtail's waits, sleeping threads of the
  // pool stand in for it. The right choice for handlers that are not known (stand_ins.cc).
  bool stand_ins = false;

  // The config "auto".
  static Config Auto() { return {.model = {.waiting = Waiting::kFiber}, .stand_ins = true}; }
  // Errors: INVALID_ARGUMENT with the fault and the right form.
  static absl::StatusOr<Config> Parse(std::string_view text);
  std::string ToString() const;
  // All of them.
  int threads() const { return network + workers + response; }
  friend bool operator==(const Config&, const Config&) = default;
};

}  // namespace curtail
