// SPDX-License-Identifier: Apache-2.0
#include "generator.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <random>

namespace curtail::bench {
namespace {

// How long any one answer may take before the run is given up.
constexpr Nanos kPatience = std::chrono::seconds(10);

float Micros(Nanos nanos) { return static_cast<float>(nanos.count()) / 1000.0f; }

timespec ToTimespec(Nanos nanos) {
  return {static_cast<time_t>(nanos.count() / 1'000'000'000),
          static_cast<long>(nanos.count() % 1'000'000'000)};
}

}  // namespace

absl::StatusOr<std::unique_ptr<Generator>> Generator::Make(const std::string& address, uint32_t connections,
                                                           bool one_at_a_time) {
  std::unique_ptr<Generator> generator(new Generator(one_at_a_time));
  if (absl::Status connected = generator->ConnectAll(address, connections); !connected.ok()) return connected;
  // The mid-tier's threads have now started and are connected to their leaves.
  absl::StatusOr<Sample> warm = generator->RunClosedLoop(connections, std::chrono::milliseconds(20));
  if (!warm.ok()) return warm.status();
  return generator;
}

absl::Status Generator::ConnectAll(const std::string& address, uint32_t connections) {
  for (uint32_t i = 0; i < connections; ++i) {
    absl::StatusOr<Fd> fd = Connect(address);
    if (!fd.ok()) return fd.status();
    epoll_event event{.events = EPOLLIN, .data = {.u32 = i}};
    if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd->get(), &event) != 0) return ErrnoStatus("epoll_ctl");
    connections_.push_back({.fd = std::move(*fd)});
  }
  const uint32_t ids = one_at_a_time_ ? connections : kMaxUnderWay;
  started_.resize(ids);
  for (uint32_t id = ids; id > 0; --id) free_.push_back(id - 1);
  return absl::OkStatus();
}

void Generator::Send(TimePoint counted_from) {
  Message message;
  message.id = free_.back();
  free_.pop_back();
  started_[message.id] = counted_from;
  Connection& connection = connections_[message.id % connections_.size()];
  connection.out.append(reinterpret_cast<const char*>(&message), sizeof(message));
}

absl::Status Generator::Flush() {
  for (Connection& connection : connections_) {
    if (connection.out.empty()) continue;
    const ssize_t n =
        send(connection.fd.get(), connection.out.data(), connection.out.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n < 0 && errno != EAGAIN && errno != EINTR) return ErrnoStatus("send");
    if (n > 0) connection.out.erase(0, static_cast<size_t>(n));  // a rest goes with the next flush
  }
  return absl::OkStatus();
}

absl::StatusOr<size_t> Generator::Collect(Deadline deadline) {
  if (absl::Status flushed = Flush(); !flushed.ok()) return flushed;
  std::array<epoll_event, 64> events;
  const timespec timeout = ToTimespec(deadline.Remaining());
  const int n = epoll_pwait2(epoll_.get(), events.data(), events.size(), &timeout, nullptr);
  if (n < 0 && errno != EINTR) return ErrnoStatus("epoll_pwait2");
  const TimePoint now = Now();
  size_t answers = 0;
  for (int i = 0; i < n; ++i) {
    absl::StatusOr<size_t> read = ReadFrom(connections_[events[static_cast<size_t>(i)].data.u32], now);
    if (!read.ok()) return read;
    answers += *read;
  }
  if (answers > 0) last_answer_ = now;
  return answers;
}

absl::StatusOr<size_t> Generator::ReadFrom(Connection& connection, TimePoint now) {
  std::array<char, 64 << 10> buffer;
  const ssize_t n = recv(connection.fd.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return 0;
  if (n < 0) return ErrnoStatus("recv");
  if (n == 0) return absl::UnavailableError("the mid-tier closed a connection; see its message above");
  connection.in.append(buffer.data(), static_cast<size_t>(n));
  size_t answers = 0;
  for (; connection.in.size() >= (answers + 1) * sizeof(Message); ++answers) {
    Message reply;
    std::memcpy(&reply, connection.in.data() + answers * sizeof(Message), sizeof(reply));
    if (absl::Status recorded = Record(reply, now); !recorded.ok()) return recorded;
  }
  connection.in.erase(0, answers * sizeof(Message));
  return answers;
}

absl::Status Generator::Record(const Message& reply, TimePoint now) {
  if (reply.id >= started_.size() || started_[reply.id] == TimePoint() || reply.replies != kLeaves) {
    return absl::DataLossError("an answer that belongs to no request");
  }
  sample_.latencies_us.push_back(Micros(now - started_[reply.id]));
  started_[reply.id] = TimePoint();
  free_.push_back(reply.id);
  return absl::OkStatus();
}

absl::Status Generator::Drain() {
  const Deadline deadline = Deadline::In(kPatience);
  while (free_.size() < started_.size()) {
    if (absl::StatusOr<size_t> answers = Collect(deadline); !answers.ok()) return answers.status();
    if (deadline.Expired()) return absl::DeadlineExceededError("requests were not answered within 10 s");
  }
  return absl::OkStatus();
}

Sample Generator::Finish(TimePoint begin) {
  sample_.seconds = std::chrono::duration<double>(last_answer_ - begin).count();
  std::sort(sample_.latencies_us.begin(), sample_.latencies_us.end());
  return std::exchange(sample_, {});
}

absl::StatusOr<Sample> Generator::RunClosedLoop(uint32_t outstanding, Nanos duration) {
  const TimePoint begin = Now();
  const Deadline end = Deadline::At(begin + duration);
  for (uint32_t i = 0; i < outstanding; ++i) Send(begin);
  while (!end.Expired()) {
    absl::StatusOr<size_t> answers = Collect(end);
    if (!answers.ok()) return answers.status();
    const TimePoint now = Now();
    for (size_t i = 0; i < *answers; ++i) Send(now);
  }
  if (absl::Status drained = Drain(); !drained.ok()) return drained;
  return Finish(begin);
}

absl::StatusOr<Sample> Generator::RunOpenLoop(double rate, Nanos duration, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::exponential_distribution<double> gap_seconds(rate);
  const auto next_gap = [&] { return Nanos(static_cast<int64_t>(gap_seconds(random) * 1e9)); };
  const TimePoint begin = Now();
  const TimePoint end = begin + duration;
  TimePoint due = begin + next_gap();
  while (due < end) {
    // All that is due goes out together, as it would from many callers.
    for (const TimePoint now = Now(); due <= now && due < end && !full(); due += next_gap()) Send(due);
    absl::StatusOr<size_t> answers =
        Collect(full() ? Deadline::In(kPatience) : Deadline::At(std::min(due, end)));
    if (!answers.ok()) return answers.status();
    if (*answers == 0 && full()) return absl::DeadlineExceededError("the mid-tier has stopped answering");
  }
  if (absl::Status drained = Drain(); !drained.ok()) return drained;
  return Finish(begin);
}

}  // namespace curtail::bench
