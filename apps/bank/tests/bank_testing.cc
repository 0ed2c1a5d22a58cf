// SPDX-License-Identifier: Apache-2.0
#include "apps/bank/tests/bank_testing.h"

#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include "apps/bank/load/fill.h"
#include "apps/kit/load/fill.h"
#include "apps/kit/testing/filled_files.h"
#include "curtail/base/strings.h"

namespace curtail::bank {

apps::Deployed PartedBank(const std::string& folder) {
  return {.set = {"load-balancer.replicas=0", "data=" + folder}};
}

apps::Deployed WholeBank(const std::string& folder) {
  apps::Deployed form = PartedBank(folder);
  form.monolith = true;
  form.options.flags = {"--no-sync"};
  return form;
}

void BankTest::SetUp() {
  static apps::FilledFiles filled(BANK_TOPOLOGY, WholeBank, FillBank);
  if (InFiles()) filled.CopyTo(Folder());
  app_ = apps::StartApp(BANK_TOPOLOGY, Form());
  if (!InFiles()) FillBank(app_->AddressOf("front-end"), Folder());
  front_ = Connect();
  ReadUsers();
}

void BankTest::ReadUsers() {
  const auto users = apps::ReadLoadUsers(Folder(), kApplication);
  ASSERT_TRUE(users.ok()) << users.status();
  for (const apps::LoadUser& user : *users) {
    ASSERT_EQ(user.more.size(), 8 + kWordsBeside);
    for (const size_t i : {0, 2, 4, 6})
      all_.push_back({user.id, user.name, user.token, std::stoull(user.more[i]), user.more[i + 1],
                      std::stoull(user.more[8])});
  }
}

void BankTest::TearDown() {
  front_.reset();
  if (app_ == nullptr) return;
  const absl::Status ended = app_->Stop();
  EXPECT_TRUE(ended.ok()) << ended;
}

void FillBank(const std::string& target, const std::string& folder) {
  EXPECT_EQ(std::system(Join(BANK_PROGRAM, " fill --quiet --customers 6 --accounts 4 --deposit ", kDeposit,
                             " --data ", folder, " --target ", target)
                            .c_str()),
            0);
}

int BankTest::Audit(std::string* text) const {
  const std::string file = dir_.File("audit");
  const int how = std::system(Join(BANK_PROGRAM, " audit --data ", Folder(), " 2> ", file).c_str());
  std::ifstream in(file);
  if (text != nullptr) text->assign(std::istreambuf_iterator<char>(in), {});
  return WEXITSTATUS(how);
}

const Own& BankTest::Other(const Own& own, bool same_shard, bool same_customer) const {
  for (const Own& other : all_) {
    if (other.id != own.id && (other.shard() == own.shard()) == same_shard &&
        (other.token == own.token) == same_customer)
      return other;
  }
  ADD_FAILURE() << "no such account among 24";
  return all_.back();
}

void BankTest::AwaitArrival(const std::string& token, uint64_t id) const {
  const Deadline deadline = Deadline::In(kMaxTestWait);
  Payment payment;
  do {
    const absl::Status looked = Look(token, id, &payment);
    ASSERT_TRUE(looked.ok() || absl::IsUnavailable(looked)) << looked;
    ASSERT_FALSE(deadline.Expired()) << payment.DebugString();
    BetweenLooks();
  } while (payment.state() != Payment::ARRIVED);
}

void BankTest::AwaitCents(const Own& own, int64_t cents) const {
  const Deadline deadline = Deadline::In(kMaxTestWait);
  while (CentsOf(own) != cents && !deadline.Expired()) BetweenLooks();
  EXPECT_EQ(CentsOf(own), cents);
}

std::vector<Movement> BankTest::AwaitMovements(const Own& own) const {
  Balance balance;
  EXPECT_TRUE(GetBalance(own.token, own.id, &balance).ok());
  const Deadline deadline = Deadline::In(kMaxTestWait);
  std::vector<Movement> all;
  while (all.empty() || all[0].version() < balance.version()) {
    all.clear();
    Movements page;
    do {
      const uint64_t before = page.next();
      page.Clear();
      const absl::Status listed = List(own.token, own.id, before, &page);
      EXPECT_TRUE(listed.ok()) << listed;
      all.insert(all.end(), page.movements().begin(), page.movements().end());
    } while (page.next() != 0);
    if (deadline.Expired()) {
      ADD_FAILURE() << all.size() << " movements of " << balance.version();
      break;
    }
  }
  return all;
}

void BankFaultTest::ActWhileKilled(const std::vector<std::string>& services,
                                   const std::function<void(int)>& act) {
  std::vector<std::thread> customers;
  for (int i = 0; i < kCustomers; ++i) customers.emplace_back([&act, i] { act(i); });
  for (const std::string& service : services) {
    AwaitAnswers();
    app_->Kill(service);
    EXPECT_TRUE(app_->Restart(service).ok());
  }
  AwaitAnswers();
  stop_.store(true);
  for (std::thread& customer : customers) customer.join();
}

void BankFaultTest::AwaitAnswers() const {
  const Deadline deadline = Deadline::In(kMaxTestWait);
  const int before = answered_.load();
  while (answered_.load() < before + kAnswersBetween && !deadline.Expired()) BetweenLooks();
  EXPECT_FALSE(deadline.Expired());
}

std::string WordsOf(const absl::Status& status, uint64_t number) {
  std::string words = status.ToString();
  if (const size_t at = words.find(std::to_string(number)); at != std::string::npos)
    words.replace(at, std::to_string(number).size(), "N");
  return words;
}

}  // namespace curtail::bank
