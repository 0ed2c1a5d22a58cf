// SPDX-License-Identifier: Apache-2.0
#include "curtail/store/memcached.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "curtail/base/strings.h"

namespace curtail {

using memcached::Answer;

namespace {

uint64_t UnixNanos() {
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(since).count());
}

// Nothing that was sent on it can be carried out any more.
bool Resolved(Stream& stream) {
  return stream.TryReceive() == Stream::State::kClosed ||
         memcached::ParseAnswer(stream.received()).consumed > 0;
}

}  // namespace

Memcached::Memcached(StoreAddress address, MemcachedOptions options)
    : pool_(std::move(address), "memcached", options.connections) {}

Memcached::~Memcached() = default;

absl::Status Memcached::Exchange(const Command& command, Deadline deadline, Stream& stream,
                                 OnAnswer on_answer, bool* sent, bool* closed) const {
  absl::Status status = stream.Send({command.head, command.body, command.tail}, deadline);
  *sent = status.ok();
  size_t read = 0, wanted = 0;
  for (size_t answers = 0; status.ok() && answers < command.answers;) {
    const memcached::ParsedAnswer parsed = memcached::ParseAnswer(stream.received().substr(read));
    if (parsed.consumed == 0) {
      wanted = read + parsed.wanted;
      status = stream.Receive(wanted, deadline);
      continue;
    }
    read += parsed.consumed;
    const Answer& answer = parsed.answer;
    const bool second = answers + 1 == command.answers && read < stream.received().size();
    if (second || answer.kind == Answer::Kind::kBroken) {
      return absl::UnavailableError(Join("memcached ", address(), " answered what was not asked: ",
                                         second ? "a second answer" : answer.text));
    }
    if (answer.kind != command.yes && answer.kind != command.no && answer.kind != command.neither &&
        answer.kind != Answer::Kind::kRefused) {
      return absl::UnavailableError(
          Join("memcached ", address(), " answered another command than it was asked, with \"",
               answer.kind == Answer::Kind::kValue ? "a value" : answer.text, "\""));
    }
    on_answer(answers++, answer);
  }
  *closed = absl::IsUnavailable(status);
  return status;
}

absl::Status Memcached::RunOnce(const Command& command, Deadline deadline, OnAnswer on_answer,
                                StreamPool::Lease* lease, bool* again) {
  // The caller waits no longer.
  if (deadline.Expired()) {
    return absl::DeadlineExceededError(Join("memcached ", address(), " was not asked: no time is left"));
  }
  bool sent = false;
  bool closed = false;
  const absl::Status status = Exchange(command, deadline, **lease, on_answer, &sent, &closed);
  if (status.ok()) return status;
  if (closed) lost_.store(UnixNanos(), std::memory_order_relaxed);
  *again = closed && lease->reused();
  std::unique_ptr<Stream> stream = lease->Remove();
  if (sent && absl::IsDeadlineExceeded(status) && command.writes) KeepAside(std::move(stream));
  return status;
}

absl::Status Memcached::Run(const Command& command, Deadline deadline, Answer* answer,
                            StreamPool::Lease* lease) {
  return Run(command, deadline, [&](size_t, const Answer& one) { *answer = one; }, lease);
}

absl::Status Memcached::Run(const Command& command, Deadline deadline, OnAnswer on_answer,
                            StreamPool::Lease* lease) {
  if (command.writes) {
    if (absl::Status status = CheckNoneUnanswered(); !status.ok()) return status;
  }
  if (absl::Status status = pool_.Take(false, deadline, lease); !status.ok()) {
    if (absl::IsUnavailable(status)) lost_.store(UnixNanos(), std::memory_order_relaxed);
    return status;
  }
  bool again = false;
  const absl::Status status = RunOnce(command, deadline, on_answer, lease, &again);
  // memcached was restarted since the connection was used last. All commands may be repeated: what the first
  // try did, if anything, went with the old memcached or is what this one does.
  if (!again) return status;
  if (absl::Status fresh = pool_.Take(true, deadline, lease); !fresh.ok()) return fresh;
  return RunOnce(command, deadline, on_answer, lease, &again);
}

absl::Status Memcached::CheckNoneUnanswered() {
  if (!any_unanswered_.load(std::memory_order_relaxed)) return absl::OkStatus();
  const MutexLock lock(mu_);
  std::erase_if(unanswered_, [](const auto& stream) { return Resolved(*stream); });
  any_unanswered_.store(!unanswered_.empty(), std::memory_order_relaxed);
  if (unanswered_.empty()) return absl::OkStatus();
  return absl::UnavailableError(Join("memcached ", address(), " has not answered ", unanswered_.size(),
                                     " earlier writes yet; no other may overtake them"));
}

void Memcached::KeepAside(std::unique_ptr<Stream> stream) {
  const MutexLock lock(mu_);
  unanswered_.push_back(std::move(stream));
  any_unanswered_.store(true, std::memory_order_relaxed);
}

absl::Status Memcached::Refused(const Answer& answer) const {
  const std::string text = Join("memcached ", address(), " refused: ", answer.text);
  if (answer.text.find("too large") != std::string_view::npos) {
    return absl::InvalidArgumentError(Join(text, "; start it with -I 2m for values of up to 1 MiB"));
  }
  return absl::ResourceExhaustedError(text);
}

absl::Status Memcached::Get(std::string_view key, Deadline deadline, bool* found, std::string* value) {
  std::string head;
  memcached::AppendGet(key, &head);
  uint64_t none = 0;
  return Get(head, deadline, found, value, &none);
}

absl::Status Memcached::GetVersioned(std::string_view key, Deadline deadline, bool* found, std::string* value,
                                     uint64_t* version) {
  std::string head;
  memcached::AppendVersionedGet(key, &head);
  return Get(head, deadline, found, value, version);
}

absl::Status Memcached::Get(std::string_view head, Deadline deadline, bool* found, std::string* value,
                            uint64_t* version) {
  const Command command{.head = head, .yes = Answer::Kind::kValue, .no = Answer::Kind::kMiss};
  Answer answer;
  StreamPool::Lease lease;
  if (absl::Status status = Run(command, deadline, &answer, &lease); !status.ok()) return status;
  if (answer.kind == Answer::Kind::kRefused) return Refused(answer);
  *found = answer.kind == Answer::Kind::kValue;
  if (*found) value->assign(answer.value), *version = answer.version;
  return absl::OkStatus();
}

absl::Status Memcached::GetAll(std::span<const std::string> keys, Deadline deadline,
                               std::vector<std::optional<std::string>>* values) {
  values->assign(keys.size(), std::nullopt);
  for (size_t begin = 0; begin < keys.size(); begin += kMaxGets) {
    const std::span<const std::string> some = keys.subspan(begin, std::min(kMaxGets, keys.size() - begin));
    std::string head;
    for (const std::string& key : some) memcached::AppendGet(key, &head);
    const Command command{
        .head = head, .yes = Answer::Kind::kValue, .no = Answer::Kind::kMiss, .answers = some.size()};
    absl::Status refused;
    const auto put = [&](size_t number, const Answer& answer) {
      if (answer.kind == Answer::Kind::kRefused) refused.Update(Refused(answer));
      if (answer.kind == Answer::Kind::kValue) (*values)[begin + number] = std::string(answer.value);
    };
    StreamPool::Lease lease;
    absl::Status status = Run(command, deadline, put, &lease);
    status.Update(refused);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status Memcached::Set(std::string_view key, std::string_view value, bool if_absent, Deadline deadline,
                            bool* stored) {
  std::string head;
  memcached::AppendSetHead(key, value.size(), if_absent, &head);
  return Set({.head = head,
              .body = value,
              .tail = memcached::kLineEnd,
              .writes = true,
              .no = if_absent ? Answer::Kind::kNotStored : Answer::Kind::kDone},
             deadline, stored);
}

absl::Status Memcached::Replace(std::string_view key, std::string_view value, uint64_t version,
                                Deadline deadline, bool* stored) {
  std::string head;
  memcached::AppendReplaceHead(key, value.size(), version, &head);
  return Set({.head = head,
              .body = value,
              .tail = memcached::kLineEnd,
              .writes = true,
              .no = Answer::Kind::kNotStored,
              .neither = Answer::Kind::kMiss},
             deadline, stored);
}

absl::Status Memcached::Set(const Command& command, Deadline deadline, bool* stored) {
  Answer answer;
  StreamPool::Lease lease;
  if (absl::Status status = Run(command, deadline, &answer, &lease); !status.ok()) return status;
  if (answer.kind == Answer::Kind::kRefused) return Refused(answer);
  *stored = answer.kind == Answer::Kind::kDone;
  return absl::OkStatus();
}

absl::Status Memcached::Delete(std::string_view key, Deadline deadline, bool* found) {
  std::string head;
  memcached::AppendDelete(key, &head);
  Answer answer;
  StreamPool::Lease lease;
  const Command command{.head = head, .writes = true, .no = Answer::Kind::kMiss};
  if (absl::Status status = Run(command, deadline, &answer, &lease); !status.ok()) return status;
  if (answer.kind == Answer::Kind::kRefused) return Refused(answer);
  *found = answer.kind == Answer::Kind::kDone;
  return absl::OkStatus();
}

absl::Status Memcached::Flush(Deadline deadline) {
  Answer answer;
  StreamPool::Lease lease;
  if (absl::Status status =
          Run({.head = memcached::kFlushCommand, .writes = true}, deadline, &answer, &lease);
      !status.ok()) {
    return status;
  }
  return answer.kind == Answer::Kind::kDone ? absl::OkStatus() : Refused(answer);
}

absl::Status Memcached::Check(Deadline deadline) {
  // Nothing is on its way on an idle one.
  if (pool_.AnyIdleBroken()) lost_.store(UnixNanos(), std::memory_order_relaxed);
  bool found = false;
  std::string value;
  return Get("is it there", deadline, &found, &value);
}

}  // namespace curtail
