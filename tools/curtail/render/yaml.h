// SPDX-License-Identifier: Apache-2.0
//
// yaml.h - YAML that is built in the order in which it is written, with texts quoted where a reader could take them for
// something else.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace curtail::tool {

// A Yaml is one value: a text, a number or truth, a list or a map. Value type.
class Yaml {
 public:
  enum class Kind { kText, kPlain, kList, kMap };
  struct Entry;

  Yaml(std::string text);
  Yaml(const char* text);
  Yaml(int number);
  Yaml(bool truth);
  // Written as it is: a number or a truth that is a marker (markers.h).
  static Yaml Plain(std::string text);
  static Yaml Map();
  static Yaml Map(std::initializer_list<Entry> entries);
  static Yaml List();
  static Yaml List(std::vector<Yaml> items);

  // Adds to a map. An empty `comment` is none. Returns *this.
  Yaml& Add(std::string key, Yaml value, std::string comment = {});
  // Adds to a list. Returns *this.
  Yaml& Push(Yaml item);

  Kind kind() const { return kind_; }
  const std::string& text() const { return text_; }
  const std::vector<Yaml>& items() const { return items_; }
  const std::vector<Entry>& entries() const { return entries_; }  // of a map
  bool empty() const;
  // The value of a key of a map; null if there is none.
  const Yaml* Find(std::string_view key) const;
  Yaml* Find(std::string_view key);
  // As templates see it: not false, 0 nor empty.
  bool IsTrue() const;

  // The document, which ends with a line break.
  std::string Write() const;

 private:
  friend class YamlWriter;
  explicit Yaml(Kind kind);

  Kind kind_ = Kind::kText;
  std::string text_;
  std::vector<Yaml> items_;
  std::vector<Entry> entries_;
};

struct Yaml::Entry {
  std::string key;
  Yaml value;
  std::string comment = {};
};

}  // namespace curtail::tool
