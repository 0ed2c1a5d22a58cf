// SPDX-License-Identifier: Apache-2.0
//
// stream_testing.h - a service of streams of all kinds, for tests under each model.
#pragma once

#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

#include "curtail/rpc/rpc_testing.h"
#include "curtail/rpc/stream.h"

namespace curtail {

using Both = ServerStream<StringValue, StringValue>;

// Messages that are written without a wait.
inline constexpr int kBurst = 10;

// Messages of 60,000 bytes.
inline constexpr int kHeap = 600;

// The handlers tell what they have seen.
struct Seen {
  Gate stalled;
  Gate turns[3];
  Gate ended;
  std::atomic<bool> stop{false};
  std::atomic<int> written{0};
  std::mutex mu;
  absl::Status last;  // of the handler that ended last

  absl::Status End(absl::Status status) {
    {
      std::lock_guard lock(mu);
      last = status;
    }
    ended.Open();
    ended.Pass();
    return status;
  }
  absl::Status Last() {
    std::lock_guard lock(mu);
    return last;
  }
};

class StreamService final : public Service {
 public:
  StreamService(Seen* seen, Channel* leaf) : seen_(seen), leaf_(leaf) {}
  std::string_view FullName() const override { return "test.Streams"; }
  std::vector<MethodHandler> Handlers() override {
    return {Bidirectional("Chat", [](Context&, Both& stream) { return Echo(stream); }),
            Bidirectional("Meta", [](Context& ctx, Both& stream) { return Meta(ctx, stream); }),
            Bidirectional("Stall", [this](Context&, Both& stream) { return Stall(stream); }),
            Bidirectional("Push", [this](Context&, Both& stream) { return Push(stream); }),
            Bidirectional("Burst", [this](Context&, Both& stream) { return Burst(stream); }),
            Bidirectional("Count", [this](Context&, Both& stream) { return Count(stream); }),
            Bidirectional("Forward", [this](Context& ctx, Both&) { return Forward(ctx); }),
            Bidirectional("Endless", [this](Context&, Both& stream) { return Endless(stream); }),
            internal::ServerStreamingMethod<StringValue, StringValue>(
                "Stop",
                [this](Context&, const StringValue&, StreamWriter<StringValue>&) {
                  seen_->stop = true;
                  return absl::OkStatus();
                }),
            Bidirectional("Wait", [this](Context&, Both& stream) { return Wait(stream); }),
            Bidirectional("Fail", [](Context&, Both& stream) { return Fail(stream); }),
            Bidirectional("Relay", [this](Context& ctx, Both& stream) { return Relay(ctx, stream); }),
            internal::ServerStreamingMethod<StringValue, StringValue>(
                "Heap",
                [this](Context&, const StringValue&, StreamWriter<StringValue>& out) { return Heap(out); }),
            internal::ClientStreamingMethod<StringValue, StringValue>(
                "Upload",
                [](Context&, StreamReader<StringValue>& in, StringValue* out) {
                  size_t bytes = 0;
                  int count = 0;
                  for (StringValue part; in.Read(&part); ++count) bytes += part.value().size();
                  out->set_value(Join(count, " messages, ", bytes, " bytes"));
                  return in.status();
                }),
            internal::ServerStreamingMethod<StringValue, StringValue>(
                "Watch", [this](Context&, const StringValue& in, StreamWriter<StringValue>& out) {
                  return Watch(in.value(), out);
                })};
  }

 private:
  template <class F>
  static MethodHandler Bidirectional(const char* name, F f) {
    return internal::BidirectionalMethod<StringValue, StringValue>(
        name, [f](Context& ctx, Both& stream) -> absl::Status { return f(ctx, stream); });
  }

  static absl::Status Echo(Both& stream) {
    return EachMessage(stream, [](const StringValue& in, StringValue* out) {
      if (in.value() == "throw") throw std::runtime_error("thrown");
      out->set_value(in.value());
      return absl::OkStatus();
    });
  }
  static absl::Status Meta(Context& ctx, Both& stream) {
    ctx.AddInitialMetadata("x-head", "h");
    StringValue in;
    while (stream.Read(&in)) stream.Write(in);
    ctx.AddTrailingMetadata("x-trail", "t");
    return absl::OkStatus();
  }
  absl::Status Stall(Both& stream) {
    seen_->stalled.Pass();
    StringValue in;
    while (stream.Read(&in)) ++seen_->written;
    return seen_->End(stream.status());
  }
  // Holds its thread up after each message, without a wait that the model knows of.
  absl::Status Push(Both& stream) {
    for (int i = 0; i < 3; ++i) {
      stream.Write(Text("now"));
      if (!seen_->turns[i].Pass()) return absl::DeadlineExceededError("the message did not arrive");
    }
    return absl::OkStatus();
  }
  // As Push(), after a burst.
  absl::Status Burst(Both& stream) {
    for (int i = 0; i < kBurst; ++i) stream.Write(Text("now"));
    return Blocked();
  }
  absl::Status Blocked() {
    if (seen_->turns[0].Pass()) return absl::OkStatus();
    return absl::DeadlineExceededError("not all messages arrived");
  }
  // Says when the burst has come.
  absl::Status Count(Both& stream) {
    int count = 0;
    for (StringValue in; stream.Read(&in);) {
      if (++count == kBurst) seen_->turns[0].Open();
    }
    return absl::OkStatus();
  }
  // The burst goes to the leaf, once there is a connection.
  absl::Status Forward(Context& ctx) {
    ClientStream<StringValue, StringValue> first(internal::OpenStream(ctx, *leaf_, "/test.Streams/Chat"));
    StringValue answer;
    if (!first.Write(Text("x")) || !first.Read(&answer)) return first.Finish();
    ClientStream<StringValue, StringValue> leaf(internal::OpenStream(ctx, *leaf_, "/test.Streams/Count"));
    for (int i = 0; i < kBurst; ++i) leaf.Write(Text("now"));
    absl::Status status = Blocked();
    return status.ok() ? leaf.Finish() : status;
  }
  absl::Status Endless(Both& stream) {
    while (!seen_->stop && stream.Write(Text("on"))) continue;
    return stream.status();
  }
  // Notes how its only read ended.
  absl::Status Wait(Both& stream) {
    seen_->stalled.Open();
    seen_->stalled.Pass();
    StringValue in;
    return seen_->End(stream.Read(&in) ? absl::OkStatus() : stream.status());
  }
  static absl::Status Fail(Both& stream) {
    StringValue in;
    stream.Read(&in);
    stream.Write(in);
    return absl::NotFoundError("after one message");
  }
  absl::Status Watch(const std::string& count, StreamWriter<StringValue>& out) {
    const int n = std::stoi(count);
    StringValue value = Text(std::string(n < 0 ? 60'000 : 0, 'x'));
    for (int i = 0; n < 0 || i < n; ++i) {
      if (n > 0) value.set_value(std::to_string(i));
      if (!out.Write(value)) return seen_->End(out.status());
      ++seen_->written;
    }
    return absl::OkStatus();
  }
  // Far more than a client takes that does not read.
  absl::Status Heap(StreamWriter<StringValue>& out) {
    const StringValue value = Text(std::string(60'000, 'x'));
    for (; seen_->written < kHeap; ++seen_->written) {
      if (!out.Write(value)) return seen_->End(out.status());
    }
    return seen_->End(absl::OkStatus());
  }
  absl::Status Relay(Context& ctx, Both& stream) {
    ClientStream<StringValue, StringValue> leaf(internal::OpenStream(ctx, *leaf_, "/test.Streams/Chat"));
    StringValue value;
    while (stream.Read(&value)) {
      if (!leaf.Write(value) || !leaf.Read(&value) || !stream.Write(value)) break;
    }
    return leaf.Finish();
  }

  Seen* const seen_;
  Channel* const leaf_;
};

inline std::string ModelOf(const testing::TestParamInfo<const char*>& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

class StreamTest : public testing::TestWithParam<const char*> {
 protected:
  using Stream = ClientStream<StringValue, StringValue>;

  void TearDown() override {
    for (Gate* gate : {&seen_.stalled, &seen_.turns[0], &seen_.turns[1], &seen_.turns[2], &seen_.ended})
      gate->Open();
    ExpectNothingInUse(server_.get());
  }
  std::unique_ptr<Server> StartServer(Channel* leaf = nullptr, int max_threads = 64) {
    ServerOptions options;
    options.listen = {"127.0.0.1:0"};
    options.config = *Config::Parse(GetParam());
    options.default_timeout = milliseconds(1);  // not for streams
    options.max_threads = max_threads;
    std::vector<std::unique_ptr<Service>> services;
    services.push_back(std::make_unique<StreamService>(&seen_, leaf));
    auto server = Server::Start(std::move(options), std::move(services));
    EXPECT_TRUE(server.ok()) << server.status();
    return *std::move(server);
  }
  std::string Target() const { return server_->addresses()[0]; }
  Stream Open(Context& ctx, const std::string& method) {
    return Stream(internal::OpenStream(ctx, channel_, "/test.Streams/" + method));
  }
  absl::Status Upload(Context& ctx, int count, const std::string& part, std::string* answer) {
    ClientWriter<StringValue, StringValue> call(internal::OpenStream(ctx, channel_, "/test.Streams/Upload"));
    for (int i = 0; i < count; ++i) call.Write(Text(part));
    StringValue reply;
    absl::Status status = call.Finish(&reply);
    *answer = reply.value();
    return status;
  }

  Seen seen_;
  Client client_;
  const std::unique_ptr<Server> server_ = StartServer();
  Channel channel_{&client_, Target()};
};

}  // namespace curtail
