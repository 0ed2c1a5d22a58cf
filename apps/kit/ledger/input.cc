// SPDX-License-Identifier: Apache-2.0
#include "apps/kit/ledger/input.h"

#include <algorithm>
#include <set>

#include "curtail/base/strings.h"

namespace curtail::apps::ledger {

absl::Status CheckId(uint64_t account) {
  if (account > kInTransit && account <= Bounded(account)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      Join("account ", account, ": the id of an account is above ", kInTransit, " and below 2^63"));
}

absl::Status CheckCents(int64_t cents, int64_t least) {
  if (cents != 0 && cents >= least && cents <= kMostCents) return absl::OkStatus();
  return absl::InvalidArgumentError(Join(cents, " cents; an amount is at least 1 and at most ", kMostCents));
}

absl::Status CheckText(std::string_view text) {
  size_t characters = 0;
  unsigned char before = 0;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f || (before == 0xc2 && byte < 0xa0))
      return absl::InvalidArgumentError("the text has a control character; leave it out");
    if ((byte & 0xc0) != 0x80) ++characters;
    before = byte;
  }
  if (characters <= kMostTextCharacters) return absl::OkStatus();
  return absl::InvalidArgumentError(
      Join("the text has ", characters, " characters; at most ", kMostTextCharacters, " are taken"));
}

namespace {

absl::Status CheckEntries(const Posting& posting) {
  if (posting.entries.size() < 2 || posting.entries.size() > kMostEntries)
    return absl::InvalidArgumentError(
        Join(posting.entries.size(), " entries; a posting has 2 to ", kMostEntries));
  int64_t sum = 0;
  std::set<uint64_t> accounts;
  for (const Entry& entry : posting.entries) {
    const bool passes_on = entry.account == kInTransit && posting.to.has_value();
    absl::Status status = passes_on ? absl::OkStatus() : CheckId(entry.account);
    if (status.ok()) status = CheckCents(entry.cents, -kMostCents);
    if (!status.ok()) return status;
    if (!accounts.insert(entry.account).second)
      return absl::InvalidArgumentError(
          Join("account ", entry.account, " has two entries; sum them up to one"));
    sum += entry.cents;
  }
  if (sum == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(Join("the entries sum to ", sum, " cents; a posting sums to 0"));
}

absl::Status CheckPlace(const Posting& posting, uint32_t shard) {
  const Entry* const passed = Find(posting.entries, kInTransit);
  const auto debits = std::ranges::count_if(posting.entries, [](const Entry& e) { return e.cents < 0; });
  if (passed == nullptr || passed->cents < 0 || debits != 1)
    return absl::InvalidArgumentError(Join("a transfer has one debit, and a credit of account ", kInTransit));
  if (posting.to->shard == shard)
    return absl::InvalidArgumentError(Join("this is shard ", shard, "; post to the account itself"));
  return CheckId(posting.to->account);
}

}  // namespace

const Entry* Find(const std::vector<Entry>& entries, uint64_t account) {
  const auto found = std::ranges::find(entries, account, &Entry::account);
  return found == entries.end() ? nullptr : &*found;
}

absl::Status CheckAccount(const LedgerAccount& account) {
  if (absl::Status status = CheckId(account.id); !status.ok()) return status;
  if (account.owner == Bounded(account.owner) && account.limit >= 0 && account.limit <= kUnlimited)
    return absl::OkStatus();
  return absl::InvalidArgumentError(
      Join("an owner is below 2^63, a limit at least 0 and at most ", kUnlimited));
}

absl::Status CheckRequest(const LedgerRequest& request) {
  if (request.caller == kLedger || request.caller != Bounded(request.caller))
    return absl::InvalidArgumentError("a request names its caller, above 0 and below 2^63");
  if (!request.name.empty() && request.name.size() <= kMostRequestBytes) return absl::OkStatus();
  return absl::InvalidArgumentError(Join("the name of a request has 1 to ", kMostRequestBytes, " bytes"));
}

absl::Status CheckPosting(const Posting& posting, uint32_t shard) {
  absl::Status status = CheckText(posting.text);
  if (status.ok()) status = CheckEntries(posting);
  return status.ok() && posting.to ? CheckPlace(posting, shard) : status;
}

absl::Status CheckTransfer(const Transfer& transfer, uint32_t shard) {
  absl::Status status = CheckId(transfer.to.account);
  if (status.ok()) status = CheckId(transfer.sender);
  if (status.ok()) status = CheckCents(transfer.cents, 1);
  if (status.ok()) status = CheckText(transfer.text);
  if (!status.ok() || (transfer.to.shard == shard && transfer.from_shard != shard)) return status;
  return absl::InvalidArgumentError(Join("a transfer from shard ", transfer.from_shard, " to shard ",
                                         transfer.to.shard, " has come to shard ", shard));
}

std::string ContentOf(const Posting& posting) {
  std::string content = Join("post ", posting.hold, " ", posting.text.size(), " ", posting.text);
  if (posting.to) content += Join(" to ", posting.to->shard, " ", posting.to->account);
  for (const Entry& entry : posting.entries) {
    content += Join(" ", entry.account, " ", entry.cents);
    if (entry.version) content += Join(" at ", *entry.version);
  }
  return content;
}

std::string ContentOf(const Transfer& transfer) {
  return Join("receive ", transfer.sender, " ", transfer.to.account, " ", transfer.cents, " ", transfer.text);
}

}  // namespace curtail::apps::ledger
