// SPDX-License-Identifier: Apache-2.0
//
// placeholder.h - "{{uniform 1 100}}": a value in a JSON template that each request has anew.
//
//   {{index}}              the request's number, from 0
//   {{uniform LOW HIGH}}   an integer, both ends included
//   {{real LOW HIGH}}      a real number, HIGH excluded
//   {{zipf N EXPONENT}}    an integer from 1 to N, the small ones often
//   {{skew N PERCENT}}     an integer from 1 to N: nine times in ten one of the first (100 - PERCENT) % of them
//   {{string N}}           N letters and digits
//   {{bytes N}}            N bytes, for fields of type bytes
//   {{uuid}}               a random UUID (version 4)
//   {{pick A B ...}}       one of the words
//   {{reply.STEP.FIELD}}   of the reply to an earlier step of a journey (reply_fields.h)
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "curtail/load/message/choice.h"
#include "curtail/load/message/internal/reply_fields.h"

namespace curtail::internal {

// A Placeholder gives a value for each request: a pure function of its text, the seed and the request's number, or of a
// reply.
// Immutable, thus thread-safe.
class Placeholder {
 public:
  enum class Kind { kInteger, kReal, kText, kBytes, kPick, kReply };

  static constexpr int64_t kMaxTextBytes = 16 << 20;

  // `text` is what stands between the braces. `replies` has the fields of a journey so far, else null. Errors:
  // INVALID_ARGUMENT, without a position.
  [[nodiscard]] static absl::StatusOr<Placeholder> Parse(std::string_view text, uint64_t seed,
                                                         ReplyFields* replies = nullptr);

  Kind kind() const { return kind_; }
  const std::string& text() const { return text_; }
  // The request's number itself, whose range has no end.
  bool is_index() const { return generator_ == Generator::kIndex; }

  // kInteger: the value, and the least and greatest it may be.
  int64_t Integer(uint64_t request) const;
  int64_t min() const { return low_; }
  int64_t max() const { return high_; }
  // kReal and kInteger.
  double Real(uint64_t request) const;
  double real_min() const { return real_low_; }
  double real_max() const { return real_high_; }
  // kText and kBytes: the length of what Append() adds, which is short otherwise.
  int64_t max_bytes() const { return kind_ == Kind::kText || kind_ == Kind::kBytes ? high_ : 0; }
  // kPick: which of the words.
  size_t Pick(uint64_t request) const;
  const std::vector<std::string>& words() const { return words_; }
  // kReply: the value has the type bytes.
  bool bytes_of_reply() const { return kind_ == Kind::kReply && reply_.bytes; }
  // Any kind: appends the value as text; bytes as they are. False: kReply without a value, see Draw::error.
  bool Append(const Draw& draw, std::string* out) const;

 private:
  enum class Generator { kIndex, kUniform, kReal, kChoice, kString, kBytes, kUuid, kPick, kReply };

  Placeholder() = default;
  static absl::StatusOr<Placeholder> ParseReply(std::string_view path, ReplyFields* replies);
  absl::Status ConfigureAs(std::string_view name, const std::vector<std::string>& arguments);
  absl::Status ConfigureChoice(std::string_view name, const std::vector<std::string>& arguments);
  uint64_t SeedOf(uint64_t request) const;
  void AppendLetters(uint64_t request, std::string* out) const;
  void AppendBytes(uint64_t request, std::string* out) const;
  void AppendUuid(uint64_t request, std::string* out) const;

  // Immutable after Parse().
  std::string text_;
  Kind kind_ = Kind::kInteger;
  Generator generator_ = Generator::kIndex;
  uint64_t seed_ = 0;
  int64_t low_ = 0;  // of integers; of texts and bytes `high_` is the length
  int64_t high_ = 0;
  double real_low_ = 0;
  double real_high_ = 0;
  std::shared_ptr<const ItemChoice> choice_;  // shared by the copies of the placeholder
  std::vector<std::string> words_;
  ReplyField reply_;
};

// A piece of a string that may hold placeholders: literal text, or one placeholder's inside.
struct TemplatePiece {
  bool placeholder = false;
  std::string text;
};

// Cuts a string at its placeholders; "{{{{" stands for a literal "{{". Errors: INVALID_ARGUMENT, a
// placeholder has no end.
[[nodiscard]] absl::StatusOr<std::vector<TemplatePiece>> SplitTemplate(std::string_view text);

}  // namespace curtail::internal
