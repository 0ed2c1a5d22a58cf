// SPDX-License-Identifier: Apache-2.0
//
// JSON without placeholders gives the bytes that protobuf's own code gives.
#include <gtest/gtest.h>

#include <limits>

#include "curtail/base/rng.h"
#include "curtail/base/testing.h"
#include "curtail/load/message/json_template.h"
#include "google/protobuf/util/json_util.h"
#include "google/protobuf/util/message_differencer.h"
#include "message/load_test.pb.h"
#include "message/load_test_proto2.pb.h"

namespace curtail {
namespace {

using google::protobuf::FieldDescriptor;
using loadtest::Nasty;
using loadtest::Old;
using ProtoMessage = google::protobuf::Message;

template <class M>
absl::StatusOr<JsonTemplate> ParseTemplate(std::string_view json) {
  return JsonTemplate::Parse(*M::descriptor(), json, 1);
}

template <class M>
M Render(const JsonTemplate& made) {
  M message;
  EXPECT_TRUE(message.ParseFromString(made.Render(0)));
  return message;
}

// Fills messages at random, with a liking for the ends of ranges.
class Filler {
 public:
  explicit Filler(uint64_t seed) : rng_(seed) {}

  void Fill(ProtoMessage* message, int depth) {
    const auto& type = *message->GetDescriptor();
    for (int i = 0; i < type.field_count(); ++i) {
      const FieldDescriptor& field = *type.field(i);
      // protobuf's writer of JSON loses groups.
      if (rng_.Below(2) == 0 || IsOwnForm(field) || field.type() == FieldDescriptor::TYPE_GROUP) continue;
      if (field.real_containing_oneof() != nullptr &&
          message->GetReflection()->HasOneof(*message, field.real_containing_oneof())) {
        continue;
      }
      if (field.is_map()) {
        FillMap(message, field, depth);
      } else if (field.is_repeated()) {
        for (uint64_t n = rng_.Below(4); n > 0; --n) Set(message, field, depth);
      } else {
        Set(message, field, depth);
      }
    }
  }

  std::string Text() {
    static const char* const kPieces[] = {"a", "\"", "\\", "\n", "/", "\xc3\xa9", "\xf0\x9f\x98\x80",
                                          "{", "}",  " "};
    std::string text;
    for (uint64_t n = rng_.Below(6); n > 0; --n) text += kPieces[rng_.Below(std::size(kPieces))];
    for (size_t at; (at = text.find("{{")) != std::string::npos;) text.erase(at, 1);
    return text;
  }

 private:
  // Timestamp and the like, whose every content has rules; other tests have them.
  static bool IsOwnForm(const FieldDescriptor& field) {
    if (field.enum_type() != nullptr) return field.enum_type()->name() == "NullValue";
    if (field.message_type() == nullptr || field.is_map()) return false;
    const std::string& name = field.message_type()->full_name();
    return name.starts_with("google.protobuf.") && !name.ends_with("StringValue") &&
           !name.ends_with("Int64Value") && !name.ends_with("Empty");
  }

  template <class Integer>
  Integer Whole() {
    switch (rng_.Below(4)) {
      case 0:
        return std::numeric_limits<Integer>::min();
      case 1:
        return std::numeric_limits<Integer>::max();
      case 2:
        return static_cast<Integer>(rng_.Below(3));
      default:
        return static_cast<Integer>(rng_.Next());
    }
  }
  template <class Real>
  Real Fraction() {
    using Limits = std::numeric_limits<Real>;
    const Real kValues[] = {0,
                            Real(-0.0),
                            Limits::max(),
                            Limits::lowest(),
                            Limits::min(),
                            Limits::infinity(),
                            -Limits::infinity(),
                            Limits::quiet_NaN(),
                            Real(0.1),
                            Real(-1.5e10)};
    return rng_.Below(2) == 0 ? static_cast<Real>(rng_.Uniform01()) : kValues[rng_.Below(std::size(kValues))];
  }

  void FillMap(ProtoMessage* message, const FieldDescriptor& field, int depth) {
    auto* nasty = static_cast<Nasty*>(message);
    for (uint64_t n = rng_.Below(3); n > 0; --n) {
      if (field.name() == "counts") (*nasty->mutable_counts())[Text()] = Whole<int32_t>();
      if (field.name() == "by_number") Fill(&(*nasty->mutable_by_number())[Whole<int64_t>()], depth + 1);
      if (field.name() == "by_flag") (*nasty->mutable_by_flag())[rng_.Below(2) == 0] = Text();
    }
  }

  // Sets the field or adds an element to it.
  void Set(ProtoMessage* message, const FieldDescriptor& field, int depth) {
    const auto& reflection = *message->GetReflection();
    const auto put = [&](auto add, auto set, auto value) {
      field.is_repeated() ? (reflection.*add)(message, &field, value)
                          : (reflection.*set)(message, &field, value);
    };
    using R = google::protobuf::Reflection;
    switch (field.cpp_type()) {
      case FieldDescriptor::CPPTYPE_INT32:
        return put(&R::AddInt32, &R::SetInt32, Whole<int32_t>());
      case FieldDescriptor::CPPTYPE_INT64:
        return put(&R::AddInt64, &R::SetInt64, Whole<int64_t>());
      case FieldDescriptor::CPPTYPE_UINT32:
        return put(&R::AddUInt32, &R::SetUInt32, Whole<uint32_t>());
      case FieldDescriptor::CPPTYPE_UINT64:
        return put(&R::AddUInt64, &R::SetUInt64, Whole<uint64_t>());
      case FieldDescriptor::CPPTYPE_DOUBLE:
        return put(&R::AddDouble, &R::SetDouble, Fraction<double>());
      case FieldDescriptor::CPPTYPE_FLOAT:
        return put(&R::AddFloat, &R::SetFloat, Fraction<float>());
      case FieldDescriptor::CPPTYPE_BOOL:
        return put(&R::AddBool, &R::SetBool, rng_.Below(2) == 0);
      case FieldDescriptor::CPPTYPE_ENUM: {
        const auto* value =
            field.enum_type()->value(static_cast<int>(rng_.Below(4)) % field.enum_type()->value_count());
        return field.is_repeated() ? reflection.AddEnum(message, &field, value)
                                   : reflection.SetEnum(message, &field, value);
      }
      case FieldDescriptor::CPPTYPE_STRING: {
        const std::string text = Text();
        return field.is_repeated() ? reflection.AddString(message, &field, text)
                                   : reflection.SetString(message, &field, text);
      }
      case FieldDescriptor::CPPTYPE_MESSAGE:
        if (depth > 3) return;
        return Fill(field.is_repeated() ? reflection.AddMessage(message, &field)
                                        : reflection.MutableMessage(message, &field),
                    depth + 1);
    }
  }

  Rng rng_;
};

// JSON as protobuf writes it, read by us, gives the bytes that protobuf wrote before. (Its own parser is no
// measure: it loses the sign of minus zero.)
template <class M>
void ExpectSameBytes(const M& message, bool proto_names) {
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = proto_names;
  options.add_whitespace = proto_names;
  std::string json;
  ASSERT_TRUE(google::protobuf::util::MessageToJsonString(message, &json, options).ok());
  const auto parsed = ParseTemplate<M>(json);
  ASSERT_TRUE(parsed.ok()) << parsed.status() << "\n" << json;
  ASSERT_TRUE(parsed->fixed());
  const std::string ours = parsed->Render(0);
  if (json.find("counts") == std::string::npos && json.find("by") == std::string::npos) {
    EXPECT_EQ(ours, message.SerializeAsString()) << json;
    return;
  }
  // The entries of a map have no order.
  EXPECT_EQ(ours.size(), message.ByteSizeLong()) << json;
  google::protobuf::util::MessageDifferencer differencer;
  google::protobuf::util::DefaultFieldComparator comparator;
  comparator.set_treat_nan_as_equal(true);
  differencer.set_field_comparator(&comparator);
  EXPECT_TRUE(differencer.Compare(Render<M>(*parsed), message)) << json;
}

TEST(JsonAgreement, OnRandomMessages) {
  const uint64_t seed = TestSeed();
  for (uint64_t i = 0; i < 2000 && !testing::Test::HasFailure(); ++i) {
    Filler filler(seed + i);
    Nasty nasty;
    filler.Fill(&nasty, 0);
    ExpectSameBytes(nasty, i % 2 == 0);
    Old old;
    filler.Fill(&old, 0);
    old.set_name(filler.Text());
    for (auto& one : *old.mutable_olds()) {
      one.set_name("set");
      one.clear_olds();
    }
    ExpectSameBytes(old, i % 2 == 0);
  }
}

TEST(JsonAgreement, OnEveryWayToWriteAValue) {
  for (
      const char* json :
      {"{}", R"({"an_int32": null, "an_item": null, "strings": null, "counts": null})",
       R"({"anInt64": "123", "aUint64": "18446744073709551615", "aDouble": "1.5e3", "aFloat": 3.4028235e38})",
       R"({"an_int32": 1e3, "a_uint32": 2.0, "an_int64": -1E+2, "a_sint32": -0, "a_uint64": 1e19})",
       R"({"a_double": "NaN", "a_float": "-Infinity", "doubles": ["Infinity", 1, 2.5, 1e-400, -0.0]})",
       R"({"a_bytes": "-_-_", "bytess": ["+/+/", "YQ==", "YQ", "YWI=", ""]})",
       R"({"a_color": -7, "colors": ["VIOLET", 2, 99, "GRAY"]})",
       R"({"aBool": false, "bools": [true, false]})",
       R"({"byFlag": {"true": "YQ=="}, "byNumber": {"-5": {"name": "x"}}, "counts": {"": 0}})",
       R"({"oneNumber": 0, "maybeNumber": 0, "maybeText": ""})", R"({"odd-Name": "x"})",
       R"({"renamed_field": "x"})",
       R"({"at": "2024-02-29T12:00:00.5Z", "lasts": "-1.000340012s", "mask": "aBool,anItem.name"})",
       R"({"at": "1970-01-01T00:00:00Z", "wrapped": "0", "wrappedText": "", "empty": {}})",
       R"({"structure": {"a": [1, null, {"b": true}]}, "value": null, "null": null, "list": [1, "x"]})",
       R"({"any": {"@type": "type.googleapis.com/curtail.loadtest.Item", "name": "x", "inner": {"weight": 3}}})",
       R"({"any": {"@type": "type.googleapis.com/google.protobuf.Int32Value", "value": 3}})",
       R"({"a_string": "\u00e9\ud83d\ude00\/\"\\\b\f\n\r\t"})", " {\"a_string\"\t:\r\n\"x\"} "}) {
    Nasty theirs;
    const auto status = google::protobuf::util::JsonStringToMessage(json, &theirs);
    ASSERT_TRUE(status.ok()) << json << " " << status.message();
    const auto parsed = ParseTemplate<Nasty>(json);
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_EQ(Render<Nasty>(*parsed).DebugString(), theirs.DebugString()) << json;
    EXPECT_EQ(Render<Nasty>(*parsed).SerializeAsString().size(), parsed->Render(0).size()) << json;
  }
}

}  // namespace
}  // namespace curtail
