// SPDX-License-Identifier: Apache-2.0
//
// one_time_code.h - the codes that an authenticator app shows, which step a session up.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace curtail::apps {

// TOTP, RFC 6238, with SHA-1: the code of six digits that an app shows in the step `step`, of 30 s each since 1970.
std::string CodeOf(std::string_view secret, int64_t step);
inline constexpr int64_t kCodeStepS = 30;
// RFC 4648, section 6, without padding.
std::string InBase32(std::string_view bytes);

}  // namespace curtail::apps
