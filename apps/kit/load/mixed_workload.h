// SPDX-License-Identifier: Apache-2.0
//
// mixed_workload.h - requests of several kinds that generated users send, by weights. A kind is a method, how its requests are made,
// and which replies are right.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "curtail/base/rng.h"
#include "curtail/load/message/choice.h"
#include "curtail/load/message/workload.h"
#include "curtail/rpc/method.h"

namespace curtail::apps {

struct RequestKind {
  std::string_view path;
  std::function<std::string(Rng& rng, size_t user)> request;
  // Gets an Rng in the state in which `request` got it.
  std::function<bool(Rng& rng, size_t user, std::string_view reply)> is_right;
};

// Users, by number, with a `token` each, which requests that have one get.
template <class User>
using Senders = std::shared_ptr<const std::vector<User>>;

// A kind whose requests `fill(rng, user, request)` completes. `is_right(reply)`, or `is_right(rng, user, reply)`.
template <class User, class Request, class Reply, class Fill, class IsRight>
RequestKind KindOf(const Senders<User>& users, const Method<Request, Reply>& method, Fill fill,
                   IsRight is_right) {
  return {.path = method.path,
          .request =
              [=](Rng& rng, size_t user) {
                const User& sender = (*users)[user];
                Request request;
                if constexpr (requires { request.set_token(sender.token); }) request.set_token(sender.token);
                fill(rng, sender, request);
                return request.SerializeAsString();
              },
          .is_right =
              [=](Rng& rng, size_t user, std::string_view bytes) {
                Reply reply;
                if (!reply.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return false;
                if constexpr (std::is_invocable_v<IsRight, const Reply&>) {
                  return is_right(reply);
                } else {
                  return is_right(rng, (*users)[user], reply);
                }
              }};
}

using Kinds = std::map<std::string_view, RequestKind>;  // by names

// A mix has kinds with their weights, the most frequent first: "balance 38, activity 24".
struct NamedMix {
  std::string_view name, kinds;
};
std::vector<std::pair<std::string_view, double>> WeightsOf(const NamedMix& mix);

// A MixedWorkload follows from its seed, unless a kind does not. Its score is the share of right replies.
class MixedWorkload final : public Workload {
 public:
  using Mix = std::vector<std::pair<RequestKind, double>>;  // with weights, the most frequent first

  MixedWorkload(Mix mix, uint64_t seed, ItemChoice senders);

  std::string_view method() const override { return mix_.front().first.path; }
  std::string_view MethodOf(uint64_t index) const override;
  std::string Request(uint64_t index) const override;
  double Score(uint64_t index, std::string_view reply) const override;
  std::string_view score_name() const override { return "right"; }

 private:
  // The kind of a request is its first choice.
  const RequestKind& KindOf(Rng& rng) const;
  Rng RngOf(uint64_t index) const { return Rng(seed_ * 0x9E3779B97F4A7C15u + index); }

  // Immutable after construction.
  const Mix mix_;
  const uint64_t seed_;
  const ItemChoice senders_;
  double weight_ = 0;  // of all
};

}  // namespace curtail::apps
