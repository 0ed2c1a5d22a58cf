// SPDX-License-Identifier: Apache-2.0
#include "curtail/store/redis/redis_replies.h"

#include <hiredis/read.h>

#include <string>
#include <utility>

#include "curtail/base/strings.h"

namespace curtail::internal {
namespace {

using Kind = RedisReply::Kind;

// The place of the value that a task of hiredis tells of: a reply of its own, or an element of one.
RedisReply* PlaceOf(const redisReadTask* task) {
  if (task->parent == nullptr) return new RedisReply;
  return &static_cast<RedisReply*>(task->parent->obj)->elements[static_cast<size_t>(task->idx)];
}

void* CreateString(const redisReadTask* task, char* bytes, size_t size) {
  RedisReply* const reply = PlaceOf(task);
  reply->kind = task->type == REDIS_REPLY_ERROR ? Kind::kError : Kind::kText;
  reply->text.assign(bytes, size);
  return reply;
}

// Null if there are too many. The type of `elements` differs between versions of hiredis.
template <class Number>
void* CreateArray(const redisReadTask* task, Number elements) {
  auto& left = *static_cast<size_t*>(task->privdata);
  if (elements < 0 || static_cast<size_t>(elements) > left) return nullptr;
  left -= static_cast<size_t>(elements);
  RedisReply* const reply = PlaceOf(task);
  reply->kind = Kind::kArray;
  reply->elements.resize(static_cast<size_t>(elements));
  return reply;
}

void* CreateInteger(const redisReadTask* task, long long value) {
  RedisReply* const reply = PlaceOf(task);
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

RedisReplies::RedisReplies(size_t max_elements)
    : reader_(redisReaderCreateWithFunctions(Functions())),
      max_elements_(max_elements),
      elements_left_(max_elements) {
  reader_->privdata = &elements_left_;
}

RedisReplies::~RedisReplies() = default;

absl::Status RedisReplies::Feed(std::string_view bytes, std::vector<RedisReply>* replies) {
  redisReaderFeed(reader_.get(), bytes.data(), bytes.size());
  while (true) {
    void* object = nullptr;
    if (redisReaderGetReply(reader_.get(), &object) != REDIS_OK) {
      if (reader_->err == REDIS_ERR_OOM) return absl::ResourceExhaustedError("a reply has too many elements");
      return absl::UnavailableError(Join("no reply of Redis: ", reader_->errstr));
    }
    if (object == nullptr) return absl::OkStatus();
    const std::unique_ptr<RedisReply> reply(static_cast<RedisReply*>(object));
    replies->push_back(std::move(*reply));
    elements_left_ = max_elements_;
  }
}

}  // namespace curtail::internal
