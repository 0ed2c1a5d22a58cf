// SPDX-License-Identifier: Apache-2.0
//
// policies.h - the table of the library's policies. Each is defined in internal/policy_NAME.cc,
// which describes itself; this is the only other file that names it.
#pragma once

#include "curtail/adapt/policy_kind.h"

namespace curtail::internal {

extern const PolicyKind kStaticPolicy;
extern const PolicyKind kMutunePolicy;
extern const PolicyKind kMutunePaperPolicy;
extern const PolicyKind kFmPolicy;
extern const PolicyKind kIpiPolicy;
extern const PolicyKind kTbdPolicy;
extern const PolicyKind kOnlinePolicy;

// In the order of help texts. Of those that `curtail compare` takes when the user names none, it
// judges the others against the first.
inline constexpr const PolicyKind* kPolicies[] = {
    &kStaticPolicy, &kMutunePolicy, &kMutunePaperPolicy, &kFmPolicy, &kIpiPolicy, &kTbdPolicy, &kOnlinePolicy,
};

}  // namespace curtail::internal
