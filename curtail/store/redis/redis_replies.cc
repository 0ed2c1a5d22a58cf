// SPDX-License-Identifier: Apache-2.0
#include "curtail/store/redis/redis_replies.h"

#include <hiredis/read.h>

#include <string>
#include <utility>

#include "curtail/base/strings.h"

namespace curtail::internal {
namespace {

using Kind = RedisReply::Kind;

// Takes so many of the values that are left. False: there are fewer.
bool Take(const redisReadTask* task, size_t values) {
  auto& left = *static_cast<size_t*>(task->privdata);
  if (values > left) return false;
  left -= values;
  return true;
}

// The place of the value that a task of hiredis tells of: a reply of its own, or an element of one. Null: there are too many replies.
RedisReply* PlaceOf(const redisReadTask* task) {
  if (task->parent == nullptr) return Take(task, 1) ? new RedisReply : nullptr;
  return &static_cast<RedisReply*>(task->parent->obj)->elements[static_cast<size_t>(task->idx)];
}

void* CreateString(const redisReadTask* task, char* bytes, size_t size) {
  RedisReply* const reply = PlaceOf(task);
  if (reply == nullptr) return nullptr;
  reply->kind = task->type == REDIS_REPLY_ERROR ? Kind::kError : Kind::kText;
  reply->text.assign(bytes, size);
  return reply;
}

// Null if there are too many. The type of `elements` differs between versions of hiredis.
template <class Number>
void* CreateArray(const redisReadTask* task, Number elements) {
  if (elements < 0 || !Take(task, static_cast<size_t>(elements))) return nullptr;
  RedisReply* const reply = PlaceOf(task);
  if (reply == nullptr) return nullptr;
  reply->kind = Kind::kArray;
  reply->elements.resize(static_cast<size_t>(elements));
  return reply;
}

void* CreateInteger(const redisReadTask* task, long long value) {
  RedisReply* const reply = PlaceOf(task);
  if (reply == nullptr) return nullptr;
  reply->kind = Kind::kInteger;
  reply->integer = value;
  return reply;
}

void* CreateNil(const redisReadTask* task) { return PlaceOf(task); }

void FreeObject(void* reply) { delete static_cast<RedisReply*>(reply); }

redisReplyObjectFunctions* Functions() {
  static redisReplyObjectFunctions functions = [] {
    redisReplyObjectFunctions f{};
    f.createString = &CreateString;
    f.createArray = &CreateArray;
    f.createInteger = &CreateInteger;
    f.createNil = &CreateNil;
    f.freeObject = &FreeObject;
    return f;
  }();
  return &functions;
}

}  // namespace

void RedisReplies::Free::operator()(redisReader* reader) const { redisReaderFree(reader); }

RedisReplies::RedisReplies(size_t max_values)
    : reader_(redisReaderCreateWithFunctions(Functions())), values_left_(max_values) {
  reader_->privdata = &values_left_;
}

RedisReplies::~RedisReplies() = default;

absl::Status RedisReplies::Feed(std::string_view bytes, std::vector<RedisReply>* replies) {
  redisReaderFeed(reader_.get(), bytes.data(), bytes.size());
  while (true) {
    void* object = nullptr;
    if (redisReaderGetReply(reader_.get(), &object) != REDIS_OK) {
      if (reader_->err == REDIS_ERR_OOM)
        return absl::ResourceExhaustedError("the replies have too many elements");
      return absl::UnavailableError(Join("no reply of Redis: ", reader_->errstr));
    }
    if (object == nullptr) return absl::OkStatus();
    const std::unique_ptr<RedisReply> reply(static_cast<RedisReply*>(object));
    replies->push_back(std::move(*reply));
  }
}

}  // namespace curtail::internal
