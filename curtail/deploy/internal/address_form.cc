// SPDX-License-Identifier: Apache-2.0
#include "curtail/deploy/internal/address_form.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "curtail/exec/address.h"

namespace curtail::deploy {

absl::Status CheckAddress(std::string_view text) {
  if (text.find("${") != text.npos) return absl::OkStatus();
  const size_t colon = text.rfind(':');
  if (colon == text.npos || !Address::NeedsLookup(text)) return Address::Resolve(text).status();
  // The port of a name is checked behind a number.
  const std::string numeric = absl::StrCat("127.0.0.1", std::string(text.substr(colon)));
  if (Address::Resolve(numeric).ok()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("address \"", std::string(text), "\" has no port up to 65535; write HOST:PORT"));
}

}  // namespace curtail::deploy
