// SPDX-License-Identifier: Apache-2.0
//
// data.h - what the kit calls this application, and what this application calls by the kit's names.
#pragma once

#include "accounts.curtail.h"
#include "apps/kit/data/data.h"

namespace curtail::social {

inline constexpr char kApplication[] = "social";

// Where the services keep their data.
struct Data : apps::DataOptions {
  Data() { application = kApplication; }
};

using apps::Changed;
using apps::Credentials;
using apps::FoundPeople;
using apps::IdCount;
using apps::IdPage;
using apps::Ids;
using apps::NamePage;
using apps::Names;
using apps::Nothing;
using apps::PasswordChange;
using apps::People;
using apps::Person;
using apps::Session;
using apps::SessionId;
using apps::TokenRequest;
using apps::UniqueId;
using apps::User;
using apps::UserId;

}  // namespace curtail::social
