// SPDX-License-Identifier: Apache-2.0
#include "apps/social/load/people.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <set>
#include <sstream>

#include "curtail/base/strings.h"

namespace curtail::social {
namespace {

constexpr size_t kTextCharacters = 256;

std::string RandomText(Rng& rng, size_t length) {
  constexpr std::string_view kDigits = "0123456789abcdefghijklmnopqrstuvwxyz";
  std::string text(length, ' ');
  for (char& c : text) c = kDigits[rng.Below(kDigits.size())];
  return text;
}

}  // namespace

std::string NameOf(uint64_t user) { return Join("user_", user); }

std::vector<Follow> GenerateFollows(uint64_t seed, uint64_t users, uint64_t count) {
  Rng rng(seed);
  std::set<Follow> follows;
  while (follows.size() < count) {
    const uint64_t from = rng.Below(users);
    // P(number < x of all) = x^0.3: a tenth of the users has half of the followers.
    const double share = std::pow(rng.Uniform01(), 1 / 0.3);
    const auto to = std::min(static_cast<uint64_t>(share * static_cast<double>(users)), users - 1);
    // The popular are full at last; then anybody else.
    const uint64_t other = follows.contains({from, to}) ? rng.Below(users) : to;
    if (from != other) follows.insert({from, other});
  }
  return {follows.begin(), follows.end()};
}

absl::StatusOr<std::vector<Follow>> ReadFollows(const std::string& path, uint64_t* users) {
  std::ifstream file(path);
  if (!file) return absl::NotFoundError(Join(path, " cannot be read"));
  std::set<Follow> follows;
  bool matrix_market = false;
  size_t number = 0;
  *users = 0;
  uint64_t first = 1;
  for (std::string line; std::getline(file, line);) {
    ++number;
    if (line.starts_with("%%MatrixMarket")) matrix_market = true;
    if (line.empty() || line[0] == '%' || line[0] == '#') continue;
    std::istringstream fields(line);
    uint64_t from = 0, to = 0;
    if (std::exchange(matrix_market, false)) continue;  // rows, columns, entries
    constexpr uint64_t kMost = 100'000'000;
    if (!(fields >> from >> to) || from > kMost || to > kMost) {
      return absl::InvalidArgumentError(Join(path, ":", number, ": want two numbers up to ", kMost));
    }
    *users = std::max({*users, from + 1, to + 1});
    first = std::min({first, from, to});
    if (from == to) continue;
    follows.insert({from, to});
    follows.insert({to, from});
  }
  std::vector<Follow> all(follows.begin(), follows.end());
  if (first == 0 || *users == 0) return all;
  *users -= 1;
  for (auto& [from, to] : all) --from, --to;
  return all;
}

GeneratedPost GeneratePost(Rng& rng, uint64_t users) {
  GeneratedPost post;
  post.text = RandomText(rng, kTextCharacters);
  for (uint64_t i = 1 + rng.Below(6); i > 0; --i) post.text += " @" + NameOf(rng.Below(users));
  for (uint64_t i = 1 + rng.Below(6); i > 0; --i) post.text += " http://" + RandomText(rng, 64);
  for (uint64_t i = 1 + rng.Below(5); i > 0; --i) post.media_bytes.push_back(1000 + rng.Below(1'000'000));
  return post;
}

}  // namespace curtail::social
