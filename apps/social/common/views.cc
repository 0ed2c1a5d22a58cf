// SPDX-License-Identifier: Apache-2.0
#include "apps/social/common/views.h"

#include <algorithm>

#include "apps/social/data.h"
#include "curtail/rpc/when_all.h"

namespace curtail::social {
namespace {

void EraseHidden(const Ids& those, google::protobuf::RepeatedPtrField<Person>* people) {
  const auto hidden = [&](const Person& person) {
    return std::ranges::find(those.ids(), person.id()) != those.ids().end();
  };
  people->erase(std::remove_if(people->begin(), people->end(), hidden), people->end());
}

}  // namespace

Coroutine Views::See(Context& ctx, uint64_t viewer, uint64_t id, Post* post) const {
  ViewRequest view;
  view.set_viewer(viewer);
  view.add_ids(id);
  auto [seen] = co_await WhenAll(ctx, Ask(read_post_, ReadPost::kRead, view));
  if (!seen.ok()) co_return seen.status();
  if (seen->posts().empty()) co_return absl::NotFoundError("there is no such post");
  post->Swap(seen->mutable_posts(0));
  co_return absl::OkStatus();
}

Coroutine Views::Show(Context& ctx, uint64_t viewer, const Ids& ids, Posts* posts) const {
  ViewRequest view;
  view.set_viewer(viewer);
  *view.mutable_ids() = ids.ids();
  auto [seen] = co_await WhenAll(ctx, Ask(read_post_, ReadPost::kRead, view));
  if (seen.ok()) posts->mutable_posts()->Swap(seen->mutable_posts());
  co_return seen.status();
}

Coroutine Views::Introduce(Context& ctx, uint64_t viewer, const Ids& ids, People* people) const {
  LookRequest look;
  look.set_viewer(viewer);
  *look.mutable_authors() = ids.ids();
  auto both =
      co_await WhenAllOk(ctx, Ask(user_, User::kById, ids), Ask(block_user_, BlockUser::kHidden, look));
  if (!both.ok()) co_return both.status();
  auto& [found, hidden] = *both;
  people->mutable_people()->Swap(found.mutable_people());
  EraseHidden(hidden, people->mutable_people());
  co_return absl::OkStatus();
}

Coroutine Views::LeaveOutHidden(Context& ctx, uint64_t viewer,
                                google::protobuf::RepeatedPtrField<Person>* people) const {
  LookRequest look;
  look.set_viewer(viewer);
  for (const Person& person : *people) look.add_authors(person.id());
  auto [hidden] = co_await WhenAll(ctx, Ask(block_user_, BlockUser::kHidden, look));
  if (hidden.ok()) EraseHidden(*hidden, people);
  co_return hidden.status();
}

}  // namespace curtail::social
