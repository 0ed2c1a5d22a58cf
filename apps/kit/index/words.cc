// SPDX-License-Identifier: Apache-2.0
#include "apps/kit/index/words.h"

#include <utf8proc.h>

#include <cstdlib>

namespace curtail::apps {
namespace {

std::string Mapped(std::string_view text, int options) {
  utf8proc_uint8_t* mapped = nullptr;
  const utf8proc_ssize_t size = utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                             static_cast<utf8proc_ssize_t>(text.size()), &mapped,
                                             static_cast<utf8proc_option_t>(options));
  if (size < 0) return std::string(text);
  std::string result(reinterpret_cast<const char*>(mapped), static_cast<size_t>(size));
  std::free(mapped);
  return result;
}

}  // namespace

std::string Folded(std::string_view text) {
  return Mapped(text,
                UTF8PROC_STABLE | UTF8PROC_COMPOSE | UTF8PROC_COMPAT | UTF8PROC_CASEFOLD | UTF8PROC_IGNORE);
}

std::string Composed(std::string_view text) { return Mapped(text, UTF8PROC_STABLE | UTF8PROC_COMPOSE); }

}  // namespace curtail::apps
