// SPDX-License-Identifier: Apache-2.0
//
// palette.h - one colour for each name on a page, such as that of a config.
//
// A name keeps its colour in every section, and no two names have the same. Thread-compatible.
#pragma once

#include <map>
#include <string>

namespace curtail::internal {

// A Palette gives names their colours in the order in which they are added.
class Palette {
 public:
  // No effect on a name that is there, or is empty.
  void Add(const std::string& name);
  bool Has(const std::string& name) const { return colours_.contains(name); }
  // The CSS class of the name's colour, which fills shapes; "unknown" for other names.
  std::string ClassOf(const std::string& name) const;
  // A square of that colour, for a legend.
  std::string Swatch(const std::string& name) const;
  // The rules of the classes, for the page.
  std::string Css() const;

 private:
  std::map<std::string, size_t> colours_;
};

}  // namespace curtail::internal
