// SPDX-License-Identifier: Apache-2.0
//
// Posting: a shard of the ledger. What goes to another shard is booked here, which decides it, and delivered by a thread.
#include <chrono>

#include "apps/bank/common/books.h"
#include "apps/bank/common/leaving.h"
#include "apps/bank/data.h"
#include "apps/kit/jobs/finisher.h"
#include "apps/kit/page.h"

namespace curtail::bank {

void Put(const apps::Booked& booked, Entry* entry) {
  entry->set_posting(booked.posting);
  entry->set_account(booked.account);
  entry->set_version(booked.version);
  entry->set_cents(booked.cents);
  entry->set_balance(booked.balance);
  entry->set_counterpart(booked.counterpart);
  entry->set_text(booked.text);
  entry->set_booked_ms(booked.booked_ms);
}

struct PostingService final : Posting::CoroutineService {
  PostingService(SqlDatabase& d, Env& env)
      : db(d),
        shard(env.shard().index),
        shards(env),
        ledger(shard, apps::NowMs),
        deliverer([this](auto stopping) {
          return ledger.Deliver(
              db, [this](const auto& sent, auto* arrived) { return Send(sent, arrived); }, stopping);
        }) {
    deliverer.WorkWhileServing(env);
  }

  Coroutine Open(Context& ctx, const OwnedAccount& request, apps::Nothing*) override {
    co_return co_await db.Writing(ctx.deadline(), [&](SqlSession& s) {
      return ledger.Open(s, {.id = request.account(), .owner = request.owner(), .limit = request.limit()});
    });
  }

  Coroutine Transfer(Context& ctx, const TransferOrder& request, Entry* reply) override {
    apps::Posting posting{
        .entries = {{request.from(), -request.cents(), {}}, {request.to(), request.cents(), {}}},
        .text = request.text()};
    const size_t other = shards.IndexOf(request.to());
    if (other != shard) {
      posting.entries[1].account = apps::kInTransit;
      posting.to = apps::Place{static_cast<uint32_t>(other), request.to()};
    }
    const apps::LedgerRequest name{request.owner(), request.request(), request.since_ms()};
    std::vector<apps::Booked> booked;
    absl::Status status = co_await db.Writing(ctx.deadline(), [&](SqlSession& s) {
      apps::AccountState state;
      absl::Status owned = Owned(s, request.from(), request.owner(), 0, &state);
      return owned.ok() ? ledger.Post(s, name, posting, &booked) : owned;
    });
    if (absl::IsFailedPrecondition(status) || absl::IsNotFound(status)) {
      booked.clear();
      absl::Status kept = co_await db.Writing(
          ctx.deadline(), [&](SqlSession& s) { return ledger.Refuse(s, name, posting, &booked); });
      const bool impossible = absl::IsInvalidArgument(kept);  // it needs no refusal to be remembered
      if (!impossible && (!kept.ok() || !booked.empty())) status = kept;
    }
    for (const apps::Booked& entry : booked) {
      if (entry.account == request.from()) Put(entry, reply);
    }
    if (status.ok() && posting.to) deliverer.Wake();
    co_return status;
  }

  Coroutine Balance(Context& ctx, const BalanceQuery& request, bank::Balance* reply) override {
    co_return co_await db.Reading(ctx.deadline(), [&](SqlSession& s) {
      apps::AccountState state;
      absl::Status status = Owned(s, request.account(), request.owner(), request.at_least(), &state);
      reply->set_version(state.version);
      reply->set_cents(state.balance);
      reply->set_available_cents(state.available);
      return status;
    });
  }

  // The state of an account of `owner`. The check is part of the transaction that acts on it.
  absl::Status Owned(SqlSession& s, uint64_t account, uint64_t owner, uint64_t at_least,
                     apps::AccountState* state) const {
    absl::Status status = ledger.Balance(s, account, 0, state);
    if (absl::IsNotFound(status) || (status.ok() && state->owner != owner)) return NoAccount(account);
    return status.ok() && at_least > 0 ? ledger.Balance(s, account, at_least, state) : status;
  }

  Coroutine Entries(Context& ctx, const EntryPage& request, EntryList* reply) override {
    return List(ctx, reply, [&](SqlSession& s, auto* booked) {
      return ledger.Entries(s, request.account(), request.after(), apps::EdgeLimitOf(request.limit()),
                            booked);
    });
  }
  Coroutine Follow(Context& ctx, const EntryPage& request, EntryList* reply) override {
    return List(ctx, reply, [&](SqlSession& s, auto* booked) {
      return ledger.Follow(s, request.after(), apps::EdgeLimitOf(request.limit()), booked);
    });
  }
  template <class Read>
  Coroutine List(Context& ctx, EntryList* reply, Read read) {
    std::vector<apps::Booked> booked;
    absl::Status status =
        co_await db.Reading(ctx.deadline(), [&](SqlSession& s) { return read(s, &booked); });
    for (const apps::Booked& one : booked) Put(one, reply->add_entries());
    co_return status;
  }

  Coroutine Look(Context& ctx, const EntryPage& request, Payment* reply) override {
    apps::TransferState state{};
    absl::Status status = co_await db.Reading(
        ctx.deadline(), [&](SqlSession& s) { return ledger.Look(s, request.after(), &state); });
    reply->set_state(state == apps::TransferState::kPending   ? Payment::BOOKED
                     : state == apps::TransferState::kArrived ? Payment::ARRIVED
                                                              : Payment::RETURNED);
    co_return status;
  }

  Coroutine Receive(Context& ctx, const Transfers& request, Arrivals* reply) override {
    if (absl::Status status = apps::CheckCount(request.transfers_size(), apps::kMostIds, "transfers");
        !status.ok())
      co_return status;
    co_return co_await db.Writing(ctx.deadline(), [&](SqlSession& s) {
      absl::Status status;
      for (const Transfers::One& one : request.transfers()) {
        bool arrived = false;
        status = ledger.Receive(s,
                                {.from_shard = request.from_shard(),
                                 .posting = one.posting(),
                                 .sender = one.sender(),
                                 .to = {shard, one.account()},
                                 .cents = one.cents(),
                                 .text = one.text()},
                                &arrived);
        if (!status.ok()) return status;
        reply->add_arrived(arrived);
      }
      return status;
    });
  }

  // To the shard that all of them name.
  absl::Status Send(const std::vector<apps::Transfer>& sent, std::vector<bool>* arrived) const {
    const uint32_t to = sent[0].to.shard;
    if (to >= shards.size()) return absl::InternalError(Join("shard ", to, " does not exist"));
    Transfers request;
    request.set_from_shard(shard);
    for (const apps::Transfer& transfer : sent) {
      Transfers::One* const one = request.add_transfers();
      one->set_posting(transfer.posting);
      one->set_sender(transfer.sender);
      one->set_account(transfer.to.account);
      one->set_cents(transfer.cents);
      one->set_text(transfer.text);
    }
    Context ctx(kStepTime);
    Arrivals reply;
    absl::Status status = shards.At(to).Receive(ctx, request, &reply);
    if (status.ok()) arrived->assign(reply.arrived().begin(), reply.arrived().end());
    return status;
  }

  Coroutine Close(Context& ctx, const BooksOrder& request, apps::Nothing*) override {
    const auto close = [&](SqlSession& s) {
      absl::Status status;
      for (int i = 0; status.ok() && i < request.accounts_size(); ++i)
        status = CloseOne(s, request.accounts(i), request.attempt());
      return status;
    };
    if (request.attempt() == 0) co_return co_await db.Reading(ctx.deadline(), close);
    co_return co_await db.Writing(ctx.deadline(), close);
  }

  absl::Status CloseOne(SqlSession& s, const Holdings::One& one, uint64_t attempt) const {
    apps::AccountState state;
    absl::Status status = Owned(s, one.account(), one.owner(), 0, &state);
    if (status.ok() && state.balance != 0)
      return absl::FailedPreconditionError(Join(one.name(), " has ", state.balance, " cents, not 0"));
    if (status.ok() && attempt == 0) return ledger.CheckAtRest(s, one.account());
    if (status.ok()) status = Leave(s, one.account(), attempt);
    return status.ok() ? ledger.Close(s, one.account()) : status;
  }

  Coroutine Reopen(Context& ctx, const BooksOrder& request, apps::Nothing*) override {
    co_return co_await db.Writing(ctx.deadline(), [&](SqlSession& s) {
      absl::Status status;
      for (const Holdings::One& one : request.accounts()) {
        bool ended = false;
        status = Stay(s, one.account(), request.attempt(), &ended);
        if (status.ok() && ended) status = ledger.Reopen(s, one.account());
        if (!status.ok()) break;
      }
      return status;
    });
  }

  Coroutine Audit(Context& ctx, const apps::Nothing&, apps::Nothing*) override {
    co_return co_await db.Reading(ctx.deadline(), [](SqlSession& s) { return apps::Ledger::Audit(s); });
  }

  std::vector<DeclaredPath> Paths() const override {
    return {{"Open", {}}, {"Transfer", {}}, {"Balance", {}}, {"Entries", {}}, {"Follow", {}},
            {"Look", {}}, {"Receive", {}},  {"Audit", {}},   {"Close", {}},   {"Reopen", {}}};
  }

  SqlDatabase& db;
  const uint32_t shard;
  const Shards shards;
  const apps::Ledger ledger;
  apps::Finisher deliverer;
};

HostedService HostedPosting() {
  return apps::HostedOnData(
      kApplication, "posting", [](Env& env, const apps::DataOptions& data) -> MadeService {
        if (env.shard().count != env.Count("posting"))
          return absl::InvalidArgumentError(Join("--shard ", env.shard().ToString(),
                                                 ", but --peer posting has ", env.Count("posting"),
                                                 " addresses; each shard is one"));
        auto db = apps::OpenData(env, data, BooksOf(env.shard()), BooksSchema(), "posting");
        if (!db.ok()) return db.status();
        return std::make_unique<PostingService>(**db, env);
      });
}

}  // namespace curtail::bank
