// SPDX-License-Identifier: Apache-2.0
//
// library_service.h - a small library of books, for tests of the gateway.
#pragma once

#include <string>
#include <thread>

#include "curtail/base/strings.h"
#include "curtail/rpc/context.h"
#include "testing/library.curtail.h"

namespace curtail::gateway {

class LibraryService final : public library::Library::Service {
 public:
  absl::Status GetBook(Context& ctx, const library::GetBookRequest& request, library::Book* reply) override {
    if (request.name() == "shelves/1/books/404") return absl::NotFoundError("no \"such\" book");
    ctx.AddTrailingMetadata("x-shelf", "one");
    reply->set_name(request.name());
    reply->set_title(Join("as of ", request.as_of().seconds()));
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
      while (!ctx.cancelled() && !ctx.deadline().Expired()) std::this_thread::yield();
    }
    *reply = request;
    return absl::OkStatus();
  }
};

}  // namespace curtail::gateway
