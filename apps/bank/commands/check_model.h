// SPDX-License-Identifier: Apache-2.0
//
// check_model.h - what `bank check` knows of the accounts of its customers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "bank.pb.h"
#include "curtail/base/strings.h"

namespace curtail::bank {

inline constexpr int64_t kCardLimit = 60'000;

struct Moved {
  int64_t cents = 0;
  std::string iban;  // of the other account
  std::string text;  // empty: the server's own
};

// An account, or a card.
struct Known {
  uint64_t id = 0;
  std::string iban;  // empty: it is a card
  size_t owner = 0;
  std::vector<Moved> moved;
  int64_t cents = 0;

  bool is_card() const { return iban.empty(); }
  int64_t available() const { return cents + (is_card() ? kCardLimit : 0); }
  uint64_t version() const { return moved.size(); }
  void Move(Moved one) {
    cents += one.cents;
    moved.push_back(std::move(one));
  }
};

// A payment, a purchase with a card, or a payment of a card, as the two accounts say.
struct Order {
  size_t from = 0, to = 0;
  int64_t cents = 0;
  std::string text, key;
  Payment reply = {};
};

// The words of an error without a number.
inline std::string WithoutNumber(const absl::Status& status, uint64_t number) {
  const std::string words = status.ToString(), digits = std::to_string(number);
  const size_t at = words.find(digits);
  if (at == std::string::npos) return words;
  return Join(words.substr(0, at), "N", words.substr(at + digits.size()));
}

// The parts of a payment that no later answer changes.
inline std::string Lasting(Payment payment) {
  payment.clear_state();
  return payment.SerializeAsString();
}

}  // namespace curtail::bank
