// SPDX-License-Identifier: Apache-2.0
#include "tools/curtail/render/yaml.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace curtail::tool {
namespace {

// True if every reader of YAML 1.1 and 1.2 takes it for this text without quotes.
bool ReadsAsText(const std::string& text) {
  static constexpr std::string_view kOtherwise[] = {"true", "false", "yes", "no", "on",
                                                    "off",  "null",  "y",   "n"};
  if (text.empty() ||
      (!absl::ascii_isalpha(static_cast<unsigned char>(text.front())) && text.front() != '/')) {
    return false;
  }
  const std::string lower = absl::AsciiStrToLower(text);
  if (std::find(std::begin(kOtherwise), std::end(kOtherwise), lower) != std::end(kOtherwise)) return false;
  return text.back() != ':' && std::all_of(text.begin(), text.end(), [](unsigned char c) {
           return absl::ascii_isalnum(c) ||
                  std::string_view("/._-=:,").find(static_cast<char>(c)) != std::string_view::npos;
         });
}

}  // namespace

class YamlWriter {
 public:
  std::string Write(const Yaml& yaml) {
    out_.SetSeqFormat(YAML::Block);
    out_.SetMapFormat(YAML::Block);
    Value(yaml);
    return WithComments(std::string(out_.c_str(), out_.size())) + "\n";
  }

 private:
  void Value(const Yaml& yaml) {
    switch (yaml.kind_) {
      case Yaml::Kind::kText:
        if (!ReadsAsText(yaml.text_)) out_ << YAML::DoubleQuoted;
        out_ << yaml.text_;
        break;
      case Yaml::Kind::kPlain:
        out_ << yaml.text_;
        break;
      case Yaml::Kind::kList:
        out_ << YAML::BeginSeq;
        for (const Yaml& item : yaml.items_) Value(item);
        out_ << YAML::EndSeq;
        break;
      case Yaml::Kind::kMap:
        out_ << YAML::BeginMap;
        for (const Yaml::Entry& entry : yaml.entries_) {
          out_ << YAML::Key << (entry.comment.empty() ? entry.key : Commented(entry)) << YAML::Value;
          Value(entry.value);
        }
        out_ << YAML::EndMap;
        break;
    }
  }

  // The emitter sets comments beside what stands before them. So a key carries the number of its comment until the end.
  std::string Commented(const Yaml::Entry& entry) {
    comments_.push_back(entry.comment);
    return absl::StrCat("«", comments_.size() - 1, "»", entry.key);
  }
  std::string WithComments(std::string text) const {
    for (size_t i = 0; i < comments_.size(); ++i) {
      const std::string mark = absl::StrCat("«", i, "»");
      const size_t at = text.find(mark);
      const size_t line = text.rfind('\n', at) + 1;
      const std::string comment = absl::StrCat("# ", comments_[i], "\n", text.substr(line, at - line));
      text.replace(at, mark.size(), comment);
    }
    return text;
  }

  YAML::Emitter out_;
  std::vector<std::string> comments_;
};

Yaml::Yaml(Kind kind) : kind_(kind) {}
Yaml::Yaml(std::string text) : text_(std::move(text)) {}
Yaml::Yaml(const char* text) : text_(text) {}
Yaml::Yaml(int number) : kind_(Kind::kPlain), text_(std::to_string(number)) {}
Yaml::Yaml(bool truth) : kind_(Kind::kPlain), text_(truth ? "true" : "false") {}

Yaml Yaml::Plain(std::string text) {
  Yaml plain(Kind::kPlain);
  plain.text_ = std::move(text);
  return plain;
}

Yaml Yaml::Map() { return Yaml(Kind::kMap); }
Yaml Yaml::List() { return Yaml(Kind::kList); }

Yaml Yaml::Map(std::initializer_list<Entry> entries) {
  Yaml map(Kind::kMap);
  map.entries_ = entries;
  return map;
}

Yaml Yaml::List(std::vector<Yaml> items) {
  Yaml list(Kind::kList);
  list.items_ = std::move(items);
  return list;
}

Yaml& Yaml::Add(std::string key, Yaml value, std::string comment) {
  entries_.push_back({std::move(key), std::move(value), std::move(comment)});
  return *this;
}

Yaml& Yaml::Push(Yaml item) {
  items_.push_back(std::move(item));
  return *this;
}

bool Yaml::empty() const { return items_.empty() && entries_.empty(); }

const Yaml* Yaml::Find(std::string_view key) const {
  const auto found =
      std::find_if(entries_.begin(), entries_.end(), [key](const Entry& e) { return e.key == key; });
  return found == entries_.end() ? nullptr : &found->value;
}

Yaml* Yaml::Find(std::string_view key) { return const_cast<Yaml*>(std::as_const(*this).Find(key)); }

bool Yaml::IsTrue() const {
  if (kind_ == Kind::kPlain) return text_ != "false" && text_ != "0";
  return kind_ == Kind::kText ? !text_.empty() : !empty();
}

std::string Yaml::Write() const { return YamlWriter().Write(*this); }

}  // namespace curtail::tool
