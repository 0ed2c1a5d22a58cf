// SPDX-License-Identifier: Apache-2.0
//
// fan_out.h - the outcomes of calls that are made at once, and the form in which the runtime makes
// them. Context::FanOut(), fan_out() and WhenAll() are what programs call.
//
// Code: client/fan_out/call_all.cc and async_fanout.cc.
#pragma once

#include <cstddef>
#include <iterator>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "curtail/exec/internal/recycler.h"
#include "curtail/rpc/call_options.h"

namespace google::protobuf {
class MessageLite;
}

namespace curtail {

class Channel;
class Context;

namespace internal {

// The untyped form of a fan-out: requests[i] goes to channels[i], its answer to replies[i] and
// statuses[i]. A message is serialized once for neighbours that share it.
struct CallBatch {
  std::string_view PathOf(size_t i) const { return paths.empty() ? path : paths[i]; }

  std::span<Channel* const> channels;
  std::string_view path;  // of all calls, unless `paths` has one a call
  std::span<const google::protobuf::MessageLite* const> requests;
  std::span<google::protobuf::MessageLite* const> replies;
  std::span<absl::Status> statuses;
  // If not null: set to the bytes of the largest reply when all have ended
  size_t* largest = nullptr;
  std::span<const std::string_view> paths = {};
  // The first call that fails cancels the others, which end as CANCELLED.
  bool fail_fast = false;
  // Where the replies' metadata goes, one a call; null, or no span: nowhere.
  std::span<ReplyMetadata* const> metadata = {};
  // The time that each call has beside the context's; or no span. Calls within the process have the
  // context's alone.
  std::span<const Nanos> timeouts = {};
};

// The first error that is not CANCELLED, else the first; OK when there is none.
absl::Status FirstError(std::span<const absl::Status> statuses);

// Makes all calls at once and waits, as the present thread waits, until each has ended.
void CallAll(Context& ctx, const CallBatch& batch);
// Makes all calls at once and returns. When each has ended, a thread of the response pool calls
// done(arg) once, perhaps before this returns. The referents of `batch` live until then. The calls
// may share a write with the next request's, so the caller leaves its thread soon.
void StartAsync(Context& ctx, const CallBatch& batch, void (*done)(void*), void* arg);

// The data of a typed fan-out beside its requests; reused with the memory of its messages.
template <class Reply>
struct ReplySet {
  // Makes room for at least `n` of each; the results hold messages.
  void Prepare(size_t n) {
    if (results.size() < n) {
      results.resize(n), statuses.resize(n), in.resize(n), out.resize(n);
      metadata.resize(n), metadata_out.resize(n);
    }
    for (size_t i = 0; i < n; ++i) {
      if (!results[i].ok()) results[i].emplace();
      out[i] = &*results[i];
      metadata_out[i] = &metadata[i];
      metadata[i].Clear();
    }
    count = n;
  }
  bool Recycle() { return largest <= kKeptBytes && results.size() <= kMost; }

  static constexpr size_t kMost = 64;
  size_t count = 0;
  size_t largest = 0;
  std::vector<absl::StatusOr<Reply>> results;
  std::vector<absl::Status> statuses;
  std::vector<const google::protobuf::MessageLite*> in;
  std::vector<google::protobuf::MessageLite*> out;
  std::vector<ReplyMetadata> metadata;
  std::vector<ReplyMetadata*> metadata_out;
};

}  // namespace internal

// The outcome of a fan-out: one StatusOr<Reply> a channel, in their order. Reads like the vector
// that it converts to. Kept as it is, later fan-outs reuse its messages.
template <class Reply>
class [[nodiscard]] Replies {
 public:
  using value_type = absl::StatusOr<Reply>;
  using reference = value_type&;
  using const_reference = const value_type&;
  using iterator = value_type*;
  using const_iterator = const value_type*;
  using size_type = size_t;
  using difference_type = std::ptrdiff_t;

  explicit Replies(typename Recycler<internal::ReplySet<Reply>>::Lease set) : set_(std::move(set)) {}

  size_t size() const { return set_->count; }
  bool empty() const { return size() == 0; }
  value_type* begin() { return set_->results.data(); }
  value_type* end() { return begin() + size(); }
  const value_type* begin() const { return set_->results.data(); }
  const value_type* end() const { return begin() + size(); }
  value_type& operator[](size_t i) { return begin()[i]; }
  const value_type& operator[](size_t i) const { return begin()[i]; }
  // The metadata that reply i, or error i, came with.
  const ReplyMetadata& metadata(size_t i) const { return set_->metadata[i]; }

  operator std::vector<value_type>() const& { return std::vector<value_type>(begin(), end()); }
  operator std::vector<value_type>() && {
    return std::vector<value_type>(std::make_move_iterator(begin()), std::make_move_iterator(end()));
  }

 private:
  typename Recycler<internal::ReplySet<Reply>>::Lease set_;
};

namespace internal {

// The messages and outcomes of a typed fan-out, in the form of CallBatch.
template <class Request, class Reply>
class TypedBatch {
 public:
  // requests[i] for channel i.
  TypedBatch(std::span<Channel* const> channels, std::string_view path, const std::vector<Request>& requests)
      : TypedBatch(channels, path) {
    wrong_ = requests.size() != channels.size();
    for (size_t i = 0; !wrong_ && i < requests.size(); ++i) set_->in[i] = &requests[i];
  }
  // `request` for all.
  TypedBatch(std::span<Channel* const> channels, std::string_view path, const Request& request)
      : TypedBatch(channels, path) {
    for (size_t i = 0; i < channels.size(); ++i) set_->in[i] = &request;
  }
  TypedBatch(const TypedBatch&) = delete;
  TypedBatch& operator=(const TypedBatch&) = delete;

  // True if the numbers of requests and channels differ: do not call.
  bool wrong() const { return wrong_; }
  CallBatch batch() {
    const size_t n = set_->count;
    return {channels_,
            path_,
            {set_->in.data(), n},
            {set_->out.data(), n},
            {set_->statuses.data(), n},
            &set_->largest,
            {},
            false,
            {set_->metadata_out.data(), n}};
  }

  Replies<Reply> Take() {
    for (size_t i = 0; i < set_->count; ++i) {
      absl::Status& status = set_->statuses[i];
      if (wrong_) status = absl::InvalidArgumentError("a fan-out needs a request a channel");
      if (!status.ok()) set_->results[i] = std::exchange(status, absl::OkStatus());
    }
    return Replies<Reply>(std::move(set_));
  }

 private:
  TypedBatch(std::span<Channel* const> channels, std::string_view path) : channels_(channels), path_(path) {
    set_->Prepare(channels.size());
  }

  const std::span<Channel* const> channels_;
  const std::string_view path_;
  typename Recycler<ReplySet<Reply>>::Lease set_ = Recycler<ReplySet<Reply>>::Borrow();
  bool wrong_ = false;
};

}  // namespace internal

}  // namespace curtail
