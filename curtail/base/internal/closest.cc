// SPDX-License-Identifier: Apache-2.0
#include "curtail/base/internal/closest.h"

#include <algorithm>
#include <cctype>
#include <numeric>

#include "curtail/base/strings.h"

namespace curtail::internal {
namespace {

constexpr size_t kLongestCompared = 128;
constexpr size_t kMostListed = 12;

std::string Plain(std::string_view name) {
  std::string plain;
  for (const char c : name.substr(0, kLongestCompared)) {
    if (c != '_') plain += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return plain;
}

// Changes, insertions, losses and swaps of neighbours (the restricted distance of Damerau and Levenshtein).
size_t Distance(std::string_view a, std::string_view b) {
  std::vector<size_t> before_last(b.size() + 1);
  std::vector<size_t> last(b.size() + 1);
  std::vector<size_t> row(b.size() + 1);
  std::iota(last.begin(), last.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const bool same = a[i - 1] == b[j - 1];
      row[j] = std::min({last[j - 1] + (same ? 0 : 1), last[j] + 1, row[j - 1] + 1});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
    before_last.swap(last);
    last.swap(row);
  }
  return last.back();
}

}  // namespace

std::string Closest(std::string_view wrong, const std::vector<std::string>& names) {
  const std::string plain = Plain(wrong);
  std::string best;
  // One letter is near any other.
  size_t least = std::min(std::max<size_t>(1, plain.size() / 3) + 1, std::max<size_t>(1, plain.size()));
  for (const std::string& name : names) {
    if (name.ends_with(Join(".", wrong))) return name;
    const size_t distance = Distance(plain, Plain(name));
    if (distance < least) least = distance, best = name;
  }
  return best;
}

std::string DidYouMean(std::string_view wrong, const std::vector<std::string>& names) {
  const std::string closest = Closest(wrong, names);
  return closest.empty() || closest == wrong ? "" : Join("; did you mean \"", closest, "\"?");
}

std::string WriteHint(std::string_view wrong, const std::vector<std::string>& names) {
  std::string hint = wrong.empty() ? "" : DidYouMean(wrong, names);
  if (!hint.empty()) return hint;
  for (size_t i = 0; i < names.size(); ++i) {
    hint += Join(i == 0 ? "; write " : i + 1 == names.size() ? " or " : ", ", names[i]);
  }
  return hint;
}

std::string NamesHint(std::string_view wrong, const std::vector<std::string>& names) {
  std::string hint = DidYouMean(wrong, names);
  if (names.empty() || names.size() > kMostListed) return hint;
  hint += hint.empty() ? "; there " : " There ";
  hint += names.size() == 1 ? "is only " : "are ";
  for (size_t i = 0; i < names.size(); ++i) hint += (i == 0 ? "" : ", ") + names[i];
  return hint;
}

}  // namespace curtail::internal
