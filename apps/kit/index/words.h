// SPDX-License-Identifier: Apache-2.0
//
// words.h - texts as a search compares them.
//
// Stateless; any thread.
#pragma once

#include <string>
#include <string_view>

namespace curtail::apps {

// `text` as Unicode's NFKC_Casefold has it: letters without case, also those that become two (U+00DF is "ss") or have two
// small forms (sigma), and accents in one form however they were typed. Bytes that are not UTF-8 stay as they are.
std::string Folded(std::string_view text);

// In Unicode's form NFC, by which a password is the same from each keyboard (RFC 8265, section 4.2).
std::string Composed(std::string_view text);

}  // namespace curtail::apps
