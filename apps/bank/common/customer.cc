// SPDX-License-Identifier: Apache-2.0
#include "apps/bank/common/customer.h"

#include <algorithm>
#include <string_view>

#include "apps/kit/ledger/input.h"
#include "curtail/base/strings.h"

namespace curtail::bank {
namespace {

constexpr size_t kMostCharacters = 100;              // of a street and a city
constexpr size_t kMostEmail = 254, kMostLocal = 64;  // bytes, as RFC 5321 has them

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsUpper(char c) { return c >= 'A' && c <= 'Z'; }
bool IsLetterOrDigit(char c) { return IsDigit(c) || IsUpper(c) || (c >= 'a' && c <= 'z'); }

absl::Status CheckLine(std::string_view line, std::string_view field) {
  if (!apps::ledger::CheckText(line).ok())
    return absl::InvalidArgumentError(Join(field, " has a control character, or is too long"));
  const auto characters = std::ranges::count_if(line, [](char c) { return (c & 0xc0) != 0x80; });
  if (line.find_first_not_of(' ') != line.npos && static_cast<size_t>(characters) <= kMostCharacters)
    return absl::OkStatus();
  return absl::InvalidArgumentError(Join(field, " has 1 to ", kMostCharacters, " characters"));
}

absl::Status CheckAddress(const PostalAddress& address) {
  absl::Status status = CheckLine(address.street(), "address.street");
  if (status.ok()) status = CheckLine(address.city(), "address.city");
  if (!status.ok()) return status;
  const std::string_view code = address.postcode();
  const bool coded =
      code.size() >= 2 && code.size() <= 10 && std::ranges::any_of(code, IsLetterOrDigit) &&
      std::ranges::all_of(code, [](char c) { return IsDigit(c) || IsUpper(c) || c == ' ' || c == '-'; });
  if (!coded)
    return absl::InvalidArgumentError("address.postcode has 2 to 10 of A-Z, 0-9, spaces and hyphens");
  if (address.country().size() == 2 && std::ranges::all_of(address.country(), IsUpper))
    return absl::OkStatus();
  return absl::InvalidArgumentError("address.country has two letters of A-Z, such as DE");
}

// Labels of letters, digits and hyphens, two or more, with dots between them.
bool IsDomain(std::string_view domain) {
  int labels = 0;
  for (bool more = true; more; ++labels) {
    const size_t dot = domain.find('.');
    const std::string_view label = domain.substr(0, dot);
    if (label.empty() || label.size() > 63 || label.front() == '-' || label.back() == '-' ||
        !std::ranges::all_of(label, [](char c) { return IsLetterOrDigit(c) || c == '-'; }))
      return false;
    more = dot != domain.npos;
    if (more) domain.remove_prefix(dot + 1);
  }
  return labels >= 2;
}

// Dots are within, and not two in a row.
bool IsLocal(std::string_view local) {
  constexpr std::string_view kMarks = "!#$%&'*+-/=?^_`{|}~.";
  return !local.empty() && local.size() <= kMostLocal && local.front() != '.' && local.back() != '.' &&
         local.find("..") == local.npos && std::ranges::all_of(local, [&](char c) {
           return IsLetterOrDigit(c) || kMarks.find(c) != kMarks.npos;
         });
}

absl::Status CheckEmail(std::string_view email) {
  const size_t at = email.find('@');
  if (email.size() <= kMostEmail && at != email.npos && IsLocal(email.substr(0, at)) &&
      IsDomain(email.substr(at + 1)))
    return absl::OkStatus();
  return absl::InvalidArgumentError("email is not an address such as ann@example.org");
}

absl::StatusOr<std::string> CheckedPhone(std::string_view given) {
  std::string phone;
  for (const char c : given)
    if (c != ' ' && c != '-' && c != '(' && c != ')') phone += c;
  if (phone.size() >= 8 && phone.size() <= 16 && phone[0] == '+' && phone[1] != '0' &&
      std::all_of(phone.begin() + 1, phone.end(), IsDigit))
    return phone;
  return absl::InvalidArgumentError("phone has a +, the country and the number, 7 to 15 digits together");
}

}  // namespace

absl::StatusOr<Customer> CheckedCustomer(const CustomerOrder& order) {
  Customer customer;
  customer.set_id(order.customer());
  if (order.has_address()) {
    if (absl::Status status = CheckAddress(order.address()); !status.ok()) return status;
    *customer.mutable_address() = order.address();
  }
  if (!order.email().empty()) {
    if (absl::Status status = CheckEmail(order.email()); !status.ok()) return status;
    customer.set_email(order.email());
  }
  if (!order.phone().empty()) {
    absl::StatusOr<std::string> phone = CheckedPhone(order.phone());
    if (!phone.ok()) return phone.status();
    customer.set_phone(*std::move(phone));
  }
  return customer;
}

}  // namespace curtail::bank
