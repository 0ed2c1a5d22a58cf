// SPDX-License-Identifier: Apache-2.0
#include "curtail/observe/trace/trace_context.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <optional>

namespace curtail::observe {
namespace {

using wire::Metadata;

constexpr size_t kHex = 16;  // digits of 64 bits
constexpr size_t kParentBytes = wire::TraceParent::kBytes;
constexpr size_t kSpanAt = 36;  // within it
constexpr size_t kMostStateBytes = 512;
constexpr size_t kMostStateMembers = 32;

constexpr std::string_view kParent = wire::TraceParent::kKey;
constexpr std::string_view kState = "tracestate";
constexpr std::string_view kB3 = "b3";
constexpr std::string_view kB3Trace = "x-b3-traceid";
constexpr std::string_view kB3Span = "x-b3-spanid";
constexpr std::string_view kB3ParentSpan = "x-b3-parentspanid";
constexpr std::string_view kB3Sampled = "x-b3-sampled";
constexpr std::string_view kB3Flags = "x-b3-flags";

constexpr uint64_t kOnes = 0x0101010101010101;

// The value of eight digits, one in each byte, the first of the text in the first byte.
uint32_t ValueOf(uint64_t nibbles) {
  if (std::endian::native == std::endian::little) nibbles = __builtin_bswap64(nibbles);
  nibbles = (nibbles | nibbles >> 4) & 0x00ff00ff00ff00ff;
  nibbles = (nibbles | nibbles >> 8) & 0x0000ffff0000ffff;
  return static_cast<uint32_t>(nibbles | nibbles >> 16);
}

// Eight digits from eight nibbles.
uint64_t TextOf(uint64_t nibbles) {
  const uint64_t letters = ((nibbles + kOnes * 6) >> 4) & kOnes;  // 10 and above
  return nibbles + kOnes * '0' + letters * ('a' - '0' - 10);
}

// At most 16 digits in lower case, and nothing else.
bool ReadHex(std::string_view text, uint64_t* value) {
  uint64_t sum = 0;
  for (; text.size() >= 8; text.remove_prefix(8)) {
    uint64_t digits;
    std::memcpy(&digits, text.data(), sizeof(digits));
    const uint64_t letters = (digits >> 6) & kOnes;
    const uint64_t nibbles = ((digits & kOnes * 0xf) + letters * 9) & kOnes * 0xf;
    if (TextOf(nibbles) != digits) return false;
    sum = sum << 32 | ValueOf(nibbles);
  }
  for (const char c : text) {
    const bool letter = c >= 'a' && c <= 'f';
    if (!letter && (c < '0' || c > '9')) return false;
    sum = sum << 4 | static_cast<uint64_t>(letter ? c - 'a' + 10 : c - '0');
  }
  *value = sum;
  return true;
}

// An entry that may come once.
class Once {
 public:
  void Take(std::string_view value) {
    twice_ |= value_.has_value();
    value_ = value;
  }
  bool has() const { return value_.has_value(); }
  bool twice() const { return twice_; }
  std::string_view value() const { return value_.value_or(std::string_view()); }

 private:
  std::optional<std::string_view> value_;
  bool twice_ = false;
};

bool ReadTrace128(std::string_view text, TraceId* trace) {
  return ReadHex(text.substr(0, kHex), &trace->high) && ReadHex(text.substr(kHex), &trace->low) &&
         (trace->high | trace->low) != 0;
}

// "VERSION-TRACE-SPAN-FLAGS". Later versions may say more behind it.
bool ReadParent(std::string_view text, TraceContext* context) {
  if (text.size() < kParentBytes || text[2] != '-' || text[35] != '-' || text[52] != '-') return false;
  uint64_t version = 0, flags = 0;
  if (!ReadHex(text.substr(0, 2), &version) || version == 0xff) return false;
  if (text.size() > kParentBytes && (version == 0 || text[kParentBytes] != '-')) return false;
  if (!ReadTrace128(text.substr(3, 32), &context->trace)) return false;
  if (!ReadHex(text.substr(36, kHex), &context->span) || context->span == 0) return false;
  if (!ReadHex(text.substr(53, 2), &flags)) return false;
  context->choice = (flags & 1) != 0 ? TraceChoice::kYes : TraceChoice::kNo;
  context->random = (flags & 2) != 0;
  return true;
}

// 16 or 32 digits.
bool ReadB3Ids(std::string_view trace, std::string_view span, TraceContext* context) {
  context->short_trace = trace.size() == kHex;
  if (context->short_trace) {
    if (!ReadHex(trace, &context->trace.low) || context->trace.low == 0) return false;
  } else if (trace.size() != 2 * kHex || !ReadTrace128(trace, &context->trace)) {
    return false;
  }
  return span.size() == kHex && ReadHex(span, &context->span) && context->span != 0;
}

bool ReadB3Choice(std::string_view text, TraceChoice* choice) {
  if (text == "0") *choice = TraceChoice::kNo;
  if (text == "1" || text == "d") *choice = TraceChoice::kYes;
  return text == "0" || text == "1" || text == "d";
}

// "TRACE-SPAN[-CHOICE[-PARENT]]", or a choice alone.
bool ReadB3Single(std::string_view text, TraceContext* context) {
  context->b3 = TraceContext::B3::kSingle;
  if (text.size() == 1) return ReadB3Choice(text, &context->choice);
  const size_t first = text.find('-');
  if (first == std::string_view::npos) return false;
  const std::string_view trace = text.substr(0, first);
  std::string_view rest = text.substr(first + 1);
  const size_t second = std::min(rest.find('-'), rest.size());
  if (!ReadB3Ids(trace, rest.substr(0, second), context)) return false;
  if (second == rest.size()) return true;
  rest = rest.substr(second + 1);
  if (rest.empty() || !ReadB3Choice(rest.substr(0, 1), &context->choice)) return false;
  if (rest.size() == 1) return true;
  uint64_t parent = 0;
  return rest.size() == 2 + kHex && rest[1] == '-' && ReadHex(rest.substr(2), &parent);
}

struct B3Entries {
  bool any() const { return trace.has() || span.has() || sampled.has() || flags.has(); }
  bool twice() const { return trace.twice() || span.twice() || sampled.twice() || flags.twice(); }
  Once trace, span, sampled, flags;
};

bool ReadB3Multi(const B3Entries& entries, TraceContext* context) {
  context->b3 = TraceContext::B3::kMulti;
  if (entries.twice()) return false;
  if (entries.sampled.has()) {
    const std::string_view text = entries.sampled.value();
    // Old clients send words.
    const std::string_view digit = text == "true" ? "1" : text == "false" ? "0" : text;
    if (digit == "d" || !ReadB3Choice(digit, &context->choice)) return false;
  }
  if (entries.flags.value() == "1") context->choice = TraceChoice::kYes;  // debug
  if (!entries.trace.has() && !entries.span.has()) return true;
  return ReadB3Ids(entries.trace.value(), entries.span.value(), context);
}

// As level 2 has it: '@' is a character as others are, and a digit may begin a key.
bool IsStateKey(std::string_view key) {
  const auto alphanumeric = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
  return !key.empty() && key.size() <= 256 && alphanumeric(key[0]) &&
         std::all_of(key.begin(), key.end(), [&](char c) {
           return alphanumeric(c) || c == '_' || c == '-' || c == '*' || c == '/' || c == '@';
         });
}

bool IsStateValue(std::string_view value) {
  if (value.empty() || value.size() > 256 || value.back() == ' ') return false;
  return std::all_of(value.begin(), value.end(),
                     [](char c) { return c >= ' ' && c <= '~' && c != ',' && c != '='; });
}

std::string_view Trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

// The list of one entry, whose members count in *members.
bool IsState(std::string_view text, size_t* members) {
  while (true) {
    const size_t comma = std::min(text.find(','), text.size());
    const std::string_view member = Trimmed(text.substr(0, comma));
    if (!member.empty()) {
      const size_t equals = member.find('=');
      if (equals == std::string_view::npos || ++*members > kMostStateMembers) return false;
      if (!IsStateKey(member.substr(0, equals)) || !IsStateValue(member.substr(equals + 1))) return false;
    }
    if (comma == text.size()) return true;
    text.remove_prefix(comma + 1);
  }
}

// All entries of tracestate together.
bool ReadState(const Metadata& metadata) {
  size_t bytes = 0, members = 0;
  for (const auto& [key, value] : metadata) {
    if (key != kState) continue;
    bytes += value.size();
    if (bytes > kMostStateBytes || !wire::IsTextValue(value) || !IsState(value, &members)) return false;
  }
  return members > 0;
}

struct Found {
  Once parent, b3;
  B3Entries multi;
  bool state = false;
};

Found Find(const Metadata& metadata) {
  Found found;
  for (const auto& [key, value] : metadata) {
    if (key == kParent) {
      found.parent.Take(value);
    } else if (key == kState) {
      found.state = true;
    } else if (key == kB3) {
      found.b3.Take(value);
    } else if (key == kB3Trace) {
      found.multi.trace.Take(value);
    } else if (key == kB3Span) {
      found.multi.span.Take(value);
    } else if (key == kB3Sampled) {
      found.multi.sampled.Take(value);
    } else if (key == kB3Flags) {
      found.multi.flags.Take(value);
    }
  }
  return found;
}

// The first form that is well formed.
TraceContext FirstOf(const Found& found, bool* malformed) {
  TraceContext context;
  if (found.parent.has()) {
    if (!found.parent.twice() && ReadParent(found.parent.value(), &context)) {
      if (found.b3.has()) context.b3 = TraceContext::B3::kSingle;
      else if (found.multi.any()) context.b3 = TraceContext::B3::kMulti;
      return context;
    }
    *malformed = true;
    context = TraceContext();
  }
  if (found.b3.has()) {
    if (!found.b3.twice() && ReadB3Single(found.b3.value(), &context)) return context;
    *malformed = true;
    context = TraceContext();
  }
  if (found.multi.any()) {
    if (ReadB3Multi(found.multi, &context)) return context;
    *malformed = true;
    context = TraceContext();
  }
  return context;
}

// Says in the form that came what `parent` says.
void AddB3(const TraceContext& context, std::string_view parent, bool chosen, Metadata* carried) {
  const std::string_view trace = context.short_trace ? parent.substr(19, kHex) : parent.substr(3, 2 * kHex);
  const std::string_view choice = chosen ? "1" : "0";
  if (context.b3 == TraceContext::B3::kMulti) {
    carried->AddLowerCase(kB3Trace, trace);
    carried->AddLowerCase(kB3Span, parent.substr(36, kHex));
    carried->AddLowerCase(kB3Sampled, choice);
    return;
  }
  std::array<char, 2 * kHex + 1 + kHex + 2> single;
  char* at = std::copy(trace.begin(), trace.end(), single.data());
  at = std::copy_n(parent.data() + 35, 1 + kHex + 1, at);  // "-SPAN-"
  *at++ = choice[0];
  carried->AddLowerCase(kB3, {single.data(), static_cast<size_t>(at - single.data())});
}

}  // namespace

void WriteHex(uint64_t value, char* to) {
  using Sixteen [[gnu::vector_size(16)]] = unsigned char;
  if (std::endian::native == std::endian::little) value = __builtin_bswap64(value);
  Sixteen bytes{};
  std::memcpy(&bytes, &value, sizeof(value));
  const Sixteen high = bytes >> 4, low = bytes & 0xf;
  const Sixteen nibbles =
      __builtin_shufflevector(high, low, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
  const Sixteen text = nibbles + '0' + (reinterpret_cast<Sixteen>(nibbles > 9) & ('a' - '0' - 10));
  std::memcpy(to, &text, sizeof(text));
}

void WriteTraceParent(const TraceContext& context, uint64_t span, bool chosen, wire::TraceParent* parent) {
  char* const to = parent->text.data();
  std::memcpy(to, "00-", 3);  // the version
  WriteHex(context.trace.high, to + 3);
  WriteHex(context.trace.low, to + 19);
  to[kSpanAt - 1] = '-';
  WriteHex(span, to + kSpanAt);
  std::memcpy(to + 52, "-0", 2);
  to[54] = static_cast<char>('0' + (chosen ? 1 : 0) + (context.random ? 2 : 0));
  parent->set = true;
}

void SetSpan(uint64_t span, wire::TraceParent* parent) { WriteHex(span, parent->text.data() + kSpanAt); }

TraceContext ReadTraceContext(const Metadata& metadata, TraceErrors* errors) {
  const Found found = Find(metadata);
  TraceContext context = FirstOf(found, &errors->context);
  // It means nothing without the traceparent that it came with.
  if (found.state && found.parent.has() && context.valid() && !errors->context) {
    context.state = ReadState(metadata);
    errors->state = !context.state;
  }
  return context;
}

void AddTraceContext(const TraceContext& context, uint64_t span, bool chosen, const Metadata& received,
                     Metadata* carried, wire::TraceParent* parent) {
  wire::TraceParent own;
  wire::TraceParent& to = parent != nullptr ? *parent : own;
  WriteTraceParent(context, span, chosen, &to);
  if (parent == nullptr) carried->AddLowerCase(kParent, to.view());
  if (context.state) [[unlikely]] {
    for (const auto& [key, value] : received) {
      if (key == kState) carried->AddLowerCase(key, value);
    }
  }
  if (context.b3 != TraceContext::B3::kNone) [[unlikely]]
    AddB3(context, to.view(), chosen, carried);
}

bool IsTraceKey(std::string_view key) {
  return key == kParent || key == kState || key == kB3 || key == kB3Trace || key == kB3Span ||
         key == kB3ParentSpan || key == kB3Sampled || key == kB3Flags;
}

}  // namespace curtail::observe
