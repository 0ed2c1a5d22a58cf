// SPDX-License-Identifier: Apache-2.0
//
// library_service.h - a small library of books, for tests of the gateway.
#pragma once

#include <atomic>
#include <string>
#include <thread>

#include "curtail/base/strings.h"
#include "curtail/rpc/context.h"
#include "testing/library.curtail.h"

namespace curtail::gateway {

class LibraryService final : public library::Library::Service {
 public:
  absl::Status GetBook(Context& ctx, const library::GetBookRequest& request, library::Book* reply) override {
    ctx.AddInitialMetadata("x-floor", "2");
    ctx.AddTrailingMetadata("x-shelf", "one");
    if (request.name() == "shelves/1/books/404") return absl::NotFoundError("no \"such\" book");
    reply->set_name(request.name());
    reply->set_title(Join("as of ", request.as_of().seconds()));
    if (request.name() == "shelves/1/books/client")
      reply->set_title(std::string(ctx.metadata().Find("x-forwarded-for").value_or("nowhere")));
    if (const auto key = ctx.metadata().Find("authorization")) reply->set_cover(std::string(*key));
    return absl::OkStatus();
  }
  absl::Status ListBooks(Context&, const library::ListBooksRequest& request,
                         library::ListBooksReply* reply) override {
    reply->set_asked(request.ShortDebugString());
    return absl::OkStatus();
  }
  absl::Status UpdateBook(Context&, const library::UpdateBookRequest& request,
                          library::Book* reply) override {
    *reply = request.book();
    if (request.force()) reply->set_title("forced");
    return absl::OkStatus();
  }
  absl::Status Checkout(Context& ctx, const library::Book& request, library::Book* reply) override {
    if (request.title() == "slow") {
      slow_.fetch_add(1, std::memory_order_relaxed);
      while (!ctx.cancelled() && !ctx.deadline().Expired() && !released_.load(std::memory_order_relaxed))
        std::this_thread::yield();
      if (ctx.cancelled()) cancelled_.fetch_add(1, std::memory_order_relaxed);
      reply->set_title(request.title());  // a short answer: several come at once
      return absl::OkStatus();
    }
    *reply = request;
    return absl::OkStatus();
  }
  absl::Status SetCover(Context&, const library::SetCoverRequest& request,
                        google::api::HttpBody* reply) override {
    *reply = request.image();
    if (!reply->content_type().empty()) reply->mutable_content_type()->append("; book=" + request.name());
    return absl::OkStatus();
  }
  absl::Status Turn(Context&, const google::api::HttpBody& request, google::api::HttpBody* reply) override {
    if (request.data().empty()) return absl::InvalidArgumentError("nothing to turn");
    reply->set_data({request.data().rbegin(), request.data().rend()});
    reply->set_content_type("text/plain\r\nset-cookie: stolen");
    return absl::OkStatus();
  }
  absl::Status Watch(Context& ctx, const library::WatchRequest& request,
                     StreamWriter<library::Book>& stream) override {
    ctx.AddInitialMetadata("x-shelf", request.shelf().substr(0, 100));
    ctx.AddTrailingMetadata("x-sent", std::to_string(request.count()));
    if (request.early()) stream.SendInitialMetadata();
    library::Book book;
    book.set_title(std::string(static_cast<size_t>(request.title_bytes()), 't'));
    for (int i = 0; i < request.count(); ++i) {
      book.set_name(Join(request.shelf(), "/", i));
      if (!stream.Write(book)) break;
      sent_.fetch_add(1, std::memory_order_relaxed);
    }
    if (request.wait()) {
      while (!ctx.cancelled() && !ctx.deadline().Expired()) std::this_thread::yield();
    }
    ended_.fetch_add(1, std::memory_order_relaxed);
    if (!stream.status().ok()) return stream.status();
    if (request.wait()) return absl::CancelledError("the caller has gone");
    if (request.fail_with() == 0) return absl::OkStatus();
    return absl::Status(static_cast<absl::StatusCode>(request.fail_with()), "the shelf fell");
  }
  absl::Status Scan(Context& ctx, const library::WatchRequest& request,
                    StreamWriter<google::api::HttpBody>& stream) override {
    if (const auto range = ctx.metadata().Find("range")) {
      ctx.AddInitialMetadata("accept-ranges", "bytes");
      ctx.AddInitialMetadata("content-range", Join(*range, "/9"));
      stream.SendInitialMetadata();
    }
    if (const auto gone = ctx.metadata().Find("x-gone")) ctx.AddInitialMetadata("gone", *gone);
    google::api::HttpBody page;
    page.set_content_type("text/plain");
    for (int i = 0; i < request.count(); ++i) {
      page.set_data(std::string(static_cast<size_t>(request.title_bytes()), static_cast<char>('a' + i)));
      if (!stream.Write(page)) return stream.status();
    }
    if (request.fail_with() == 0) return absl::OkStatus();
    return absl::Status(static_cast<absl::StatusCode>(request.fail_with()), "the shelf fell");
  }
  absl::Status Donate(Context&, StreamReader<library::Book>& stream, library::Inventory* reply) override {
    for (library::Book book; stream.Read(&book);) {
      reply->set_books(reply->books() + 1);
      reply->set_bytes(reply->bytes() + static_cast<int64_t>(book.title().size()));
    }
    return stream.status();
  }
  absl::Status Copy(Context&, ServerStream<library::Book, library::Book>& stream) override {
    return EachMessage(stream, [](const library::Book& book, library::Book* copy) {
      if (book.title() == "unique") return absl::FailedPreconditionError("it cannot be copied");
      *copy = book;
      return absl::OkStatus();
    });
  }

  // Of all Watch() calls: books that were written, and calls that have ended.
  int sent() const { return sent_.load(std::memory_order_relaxed); }
  int ended() const { return ended_.load(std::memory_order_relaxed); }
  // Slow calls of Checkout(), and how many of them were cancelled.
  int slow() const { return slow_.load(std::memory_order_relaxed); }
  int cancelled() const { return cancelled_.load(std::memory_order_relaxed); }
  // Ends slow calls of Checkout().
  void Release() { released_.store(true, std::memory_order_relaxed); }

 private:
  // Atomic: counters, relaxed.
  std::atomic<int> sent_{0}, ended_{0}, slow_{0}, cancelled_{0};
  std::atomic<bool> released_{false};  // a flag only
};

}  // namespace curtail::gateway
