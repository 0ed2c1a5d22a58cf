// SPDX-License-Identifier: Apache-2.0
#include "curtail/load/message/internal/placeholder.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "absl/strings/numbers.h"
#include "curtail/base/internal/closest.h"
#include "curtail/base/mix.h"
#include "curtail/base/rng.h"
#include "curtail/base/strings.h"

namespace curtail::internal {
namespace {

struct Usage {
  const char* name;
  size_t arguments;
  const char* text;
};

constexpr Usage kUsages[] = {
    {"index", 0, "{{index}}"},
    {"uniform", 2, "{{uniform LOW HIGH}} with integers LOW <= HIGH"},
    {"real", 2, "{{real LOW HIGH}} with numbers LOW < HIGH"},
    {"zipf", 2, "{{zipf N EXPONENT}}, such as {{zipf 1000000 0.99}}"},
    {"skew", 2, "{{skew N PERCENT}}, such as {{skew 1000 80}}"},
    {"string", 1, "{{string N}} with N from 0 to 16777216"},
    {"bytes", 1, "{{bytes N}} with N from 0 to 16777216"},
    {"uuid", 0, "{{uuid}}"},
    {"pick", 1, "{{pick A B ...}} with one word or more"},
};

const Usage* FindUsage(std::string_view name) {
  for (const Usage& usage : kUsages) {
    if (usage.name == name) return &usage;
  }
  return nullptr;
}

std::vector<std::string> Names() {
  std::vector<std::string> names;
  for (const Usage& usage : kUsages) names.emplace_back(usage.name);
  return names;
}

std::vector<std::string> Words(std::string_view text) {
  std::vector<std::string> words;
  size_t end = 0;
  while (true) {
    const size_t begin = text.find_first_not_of(" \t\n", end);
    if (begin == std::string_view::npos) return words;
    end = std::min(text.find_first_of(" \t\n", begin), text.size());
    words.emplace_back(text.substr(begin, end - begin));
  }
}

bool ParseInteger(const std::string& text, int64_t* value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
  return error == std::errc() && end == text.data() + text.size();
}

bool ParseReal(const std::string& text, double* value) {
  return absl::SimpleAtod(text, value) && std::isfinite(*value);
}

}  // namespace

absl::StatusOr<Placeholder> Placeholder::ParseReply(std::string_view path, ReplyFields* replies) {
  if (replies == nullptr) {
    return absl::InvalidArgumentError(
        Join("{{", path, "}}: only the steps of a journey have earlier replies; see --journey"));
  }
  const absl::StatusOr<ReplyField> field = replies->Find(path);
  if (!field.ok()) return field.status();
  Placeholder made;
  made.text_ = Join("{{", path, "}}");
  made.kind_ = Kind::kReply;
  made.generator_ = Generator::kReply;
  made.reply_ = *field;
  return made;
}

absl::StatusOr<Placeholder> Placeholder::Parse(std::string_view text, uint64_t seed, ReplyFields* replies) {
  std::vector<std::string> words = Words(text);
  const std::string name = words.empty() ? "" : words[0];
  if (words.size() == 1 && name.starts_with("reply.")) return ParseReply(name, replies);
  const Usage* usage = FindUsage(name);
  if (usage == nullptr) {
    return absl::InvalidArgumentError(Join("no placeholder is called \"", name, "\"",
                                           NamesHint(name, Names()), "; for two braces as such write {{{{"));
  }
  words.erase(words.begin());
  Placeholder made;
  made.text_ = Join("{{", text, "}}");
  made.seed_ = Scramble(seed);
  const bool count_fits = name == "pick" ? !words.empty() : words.size() == usage->arguments;
  const absl::Status status =
      count_fits ? made.ConfigureAs(name, words) : absl::InvalidArgumentError("wrong number of arguments");
  if (status.ok()) return made;
  return absl::InvalidArgumentError(
      Join(made.text_, " is wrong (", Message(status), "): write ", usage->text));
}

absl::Status Placeholder::ConfigureAs(std::string_view name, const std::vector<std::string>& arguments) {
  const auto wrong = [](const char* what) { return absl::InvalidArgumentError(what); };
  if (name == "index") {
    high_ = std::numeric_limits<int64_t>::max();
  } else if (name == "uniform") {
    generator_ = Generator::kUniform;
    if (!ParseInteger(arguments[0], &low_) || !ParseInteger(arguments[1], &high_))
      return wrong("not integers");
    if (low_ > high_) return wrong("an empty range");
  } else if (name == "real") {
    generator_ = Generator::kReal, kind_ = Kind::kReal;
    if (!ParseReal(arguments[0], &real_low_) || !ParseReal(arguments[1], &real_high_))
      return wrong("not numbers");
    if (!(real_low_ < real_high_) || !std::isfinite(real_high_ - real_low_)) return wrong("an empty range");
  } else if (name == "zipf" || name == "skew") {
    return ConfigureChoice(name, arguments);
  } else if (name == "pick") {
    generator_ = Generator::kPick, kind_ = Kind::kPick;
    words_ = arguments;
  } else if (name == "uuid") {
    generator_ = Generator::kUuid, kind_ = Kind::kText;
  } else {
    const bool bytes = name == "bytes";
    generator_ = bytes ? Generator::kBytes : Generator::kString;
    kind_ = bytes ? Kind::kBytes : Kind::kText;
    if (!ParseInteger(arguments[0], &high_) || high_ < 0 || high_ > kMaxTextBytes)
      return wrong("no such length");
  }
  return absl::OkStatus();
}

absl::Status Placeholder::ConfigureChoice(std::string_view name, const std::vector<std::string>& arguments) {
  generator_ = Generator::kChoice;
  low_ = 1;
  if (!ParseInteger(arguments[0], &high_) || high_ < 1) return absl::InvalidArgumentError("no such N");
  absl::StatusOr<ItemChoice> choice =
      ParseItemChoice(Join(name, ":", arguments[1]), static_cast<uint64_t>(high_), seed_);
  if (!choice.ok()) return choice.status();
  choice_ = std::make_shared<const ItemChoice>(*std::move(choice));
  return absl::OkStatus();
}

uint64_t Placeholder::SeedOf(uint64_t request) const { return Scramble(seed_ + request * kMixStep); }

int64_t Placeholder::Integer(uint64_t request) const {
  switch (generator_) {
    case Generator::kUniform: {
      const uint64_t last = static_cast<uint64_t>(high_) - static_cast<uint64_t>(low_);
      Rng rng(SeedOf(request));
      const uint64_t offset = last == ~uint64_t{0} ? rng.Next() : rng.Below(last + 1);
      return static_cast<int64_t>(static_cast<uint64_t>(low_) + offset);
    }
    case Generator::kChoice:
      return static_cast<int64_t>(choice_->Index(request)) + 1;
    default:
      return static_cast<int64_t>(request & static_cast<uint64_t>(std::numeric_limits<int64_t>::max()));
  }
}

double Placeholder::Real(uint64_t request) const {
  if (generator_ != Generator::kReal) return static_cast<double>(Integer(request));
  const double value = real_low_ + Rng(SeedOf(request)).Uniform01() * (real_high_ - real_low_);
  return value < real_high_ ? value : real_low_;  // rounding may have reached the end
}

size_t Placeholder::Pick(uint64_t request) const { return Rng(SeedOf(request)).Below(words_.size()); }

bool Placeholder::Append(const Draw& draw, std::string* out) const {
  const uint64_t request = draw.number;
  char buffer[32];
  switch (generator_) {
    case Generator::kReal:
      out->append(buffer, std::to_chars(buffer, buffer + sizeof buffer, Real(request)).ptr);
      return true;
    case Generator::kPick:
      *out += words_[Pick(request)];
      return true;
    case Generator::kString:
      AppendLetters(request, out);
      return true;
    case Generator::kBytes:
      AppendBytes(request, out);
      return true;
    case Generator::kUuid:
      AppendUuid(request, out);
      return true;
    case Generator::kReply:
      return AppendKept(reply_, text_, draw, out);
    default:
      out->append(buffer, std::to_chars(buffer, buffer + sizeof buffer, Integer(request)).ptr);
      return true;
  }
}

// Eight characters from a draw: 62^8 < 2^48, so that no character is likelier than another by more than 2^-16.
void Placeholder::AppendLetters(uint64_t request, std::string* out) const {
  constexpr char kLetters[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
  constexpr uint64_t kCount = sizeof kLetters - 1;
  const auto count = static_cast<size_t>(high_);
  out->resize(out->size() + count);
  char* const to = out->data() + out->size() - count;
  Rng rng(SeedOf(request));
  for (size_t i = 0; i < count;) {
    uint64_t bits = rng.Next();
    for (const size_t end = std::min(i + 8, count); i < end; ++i, bits /= kCount)
      to[i] = kLetters[bits % kCount];
  }
}

void Placeholder::AppendBytes(uint64_t request, std::string* out) const {
  const auto count = static_cast<size_t>(high_);
  out->resize(out->size() + count);
  char* const to = out->data() + out->size() - count;
  Rng rng(SeedOf(request));
  for (size_t i = 0; i < count;) {
    uint64_t bits = rng.Next();
    for (const size_t end = std::min(i + 8, count); i < end; ++i, bits >>= 8) to[i] = static_cast<char>(bits);
  }
}

// RFC 9562, version 4: 122 random bits.
void Placeholder::AppendUuid(uint64_t request, std::string* out) const {
  constexpr char kHex[] = "0123456789abcdef";
  Rng rng(SeedOf(request));
  uint64_t bits = 0;
  for (int i = 0; i < 32; ++i, bits >>= 4) {
    if (i % 16 == 0) bits = rng.Next();
    if (i == 8 || i == 12 || i == 16 || i == 20) *out += '-';
    const uint64_t digit = bits & 15;
    *out += kHex[i == 12 ? 4 : i == 16 ? 8 | (digit & 3) : digit];
  }
}

absl::StatusOr<std::vector<TemplatePiece>> SplitTemplate(std::string_view text) {
  std::vector<TemplatePiece> pieces;
  std::string literal;
  const auto flush = [&] {
    if (!literal.empty()) pieces.push_back({false, std::move(literal)});
    literal.clear();
  };
  while (true) {
    const size_t open = text.find("{{");
    literal += text.substr(0, open);
    if (open == std::string_view::npos) break;
    text.remove_prefix(open + 2);
    if (text.starts_with("{{")) {
      literal += "{{";
      text.remove_prefix(2);
      continue;
    }
    const size_t close = text.find("}}");
    if (close == std::string_view::npos) {
      return absl::InvalidArgumentError(
          "a placeholder has no end: }} is missing; for two braces as such write {{{{");
    }
    flush();
    pieces.push_back({true, std::string(text.substr(0, close))});
    text.remove_prefix(close + 2);
  }
  flush();
  return pieces;
}

}  // namespace curtail::internal
