// SPDX-License-Identifier: Apache-2.0
//
// Any text as JSON template of a message with every kind of field. What is accepted must be a message, the same
// one each time; and without placeholders the same that protobuf's own JSON parser makes of the text. (Only
// that way round: protobuf's parser takes more than JSON.)
//
// The first byte chooses the syntax: proto3, proto2, or proto3 with fields of a reply, as steps of journeys have them.
// Of the others those from 128 on stand for pieces of
// JSON, so that a fuzzer that knows nothing of it gets somewhere.

#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <string>

#include "curtail/load/message/internal/json_message.h"
#include "curtail/load/message/internal/reply_fields.h"
#include "curtail/load/message/json_template.h"
#include "google/protobuf/util/json_util.h"
#include "google/protobuf/util/message_differencer.h"
#include "message/load_test.pb.h"
#include "message/load_test_proto2.pb.h"

namespace {

constexpr const char* kPieces[] = {
    "{",
    "}",
    "[",
    "]",
    ":",
    ",",
    "\"",
    "{}",
    "[]",
    "null",
    "true",
    "false",
    "0",
    "-0",
    "1e3",
    "-1",
    "1.5",
    "4294967296",
    "18446744073709551615",
    "1e400",
    "1e-400",
    "3.5e38",
    "\"NaN\"",
    "\"-Infinity\"",
    "\"\"",
    "\"7\"",
    "\"YQ==\"",
    "\"-_-_\"",
    "\"RED\"",
    "\"SECOND\"",
    "\"aBool,aFloat\"",
    "\"1970-01-01T00:00:00.5Z\"",
    "\"1.5s\"",
    "\\u00e9",
    "\\ud83d\\ude00",
    "\\ud800",
    "\\n",
    "\xc3\xa9",
    "\xff",
    " ",
    "\n",
    "{{index}}",
    "{{uniform 0 9}}",
    "{{real 0 1}}",
    "{{zipf 9 1}}",
    "{{skew 9 80}}",
    "{{string 3}}",
    "{{bytes 3}}",
    "{{uuid}}",
    "{{pick 1 2}}",
    "{{",
    "}}",
    "\"a_double\":",
    "\"aFloat\":",
    "\"an_int32\":",
    "\"an_int64\":",
    "\"a_uint32\":",
    "\"a_uint64\":",
    "\"a_sint32\":",
    "\"a_fixed64\":",
    "\"a_bool\":",
    "\"a_string\":",
    "\"a_bytes\":",
    "\"a_color\":",
    "\"an_item\":{",
    "\"name\":",
    "\"weight\":",
    "\"inner\":{",
    "\"doubles\":[",
    "\"floats\":[",
    "\"int64s\":[",
    "\"bools\":[",
    "\"strings\":[",
    "\"bytess\":[",
    "\"colors\":[",
    "\"items\":[{",
    "\"counts\":{\"",
    "\"by_number\":{\"",
    "\"by_flag\":{\"true\":",
    "\"one_number\":",
    "\"one_text\":",
    "\"maybe_number\":",
    "\"at\":",
    "\"lasts\":",
    "\"structure\":{",
    "\"value\":",
    "\"any\":{\"@type\":\"type.googleapis.com/curtail.loadtest.Item\"",
    "\"any\":{\"@type\":\"type.googleapis.com/google.protobuf.Int32Value\",\"value\":",
    "\"mask\":",
    "\"wrapped\":",
    "\"wrapped_text\":",
    "\"empty\":{}",
    "\"null\":",
    "\"list\":[",
    "\"odd-Name\":",
    "\"number\":",
    "\"closed\":",
    "\"unpacked\":[",
    "\"packed\":[",
    "\"bundle\":{\"tied\":",
    "\"olds\":[{\"name\":",
    "{{reply.s.",
    "an_item.inner.name}}",
    "items[0].weight}}",
    "a_bytes}}",
    "a_string}}",
    "an_int64}}",
};

std::string TextOf(const uint8_t* data, size_t size) {
  std::string text;
  for (size_t i = 0; i < size; ++i) {
    if (data[i] < 128) {
      text += static_cast<char>(data[i]);
    } else {
      text += kPieces[(data[i] - 128u) % std::size(kPieces)];
    }
  }
  return text;
}

constexpr size_t kMaxRendered = 8 << 20;

void Require(bool holds, const char* what, const std::string& text) {
  if (holds) return;
  std::fprintf(stderr, "%s: %s\n", what, text.c_str());
  std::abort();
}

// Lengths that are worth no time here: a run of digits longer than this is a long string to draw.
bool HasLongNumber(const std::string& text) {
  size_t run = 0;
  for (const char c : text) {
    run = std::isdigit(static_cast<unsigned char>(c)) ? run + 1 : 0;
    if (run > 4) return true;
  }
  return false;
}

void Check(const google::protobuf::Message& prototype, const std::string& text) {
  const auto parsed = curtail::JsonTemplate::Parse(*prototype.GetDescriptor(), text, 1);
  if (!parsed.ok()) return;
  if (!parsed->fixed() && HasLongNumber(text)) return;
  const std::string bytes = parsed->Render(7);
  Require(bytes.size() <= kMaxRendered && bytes == parsed->Render(7), "not the same twice", text);
  const std::unique_ptr<google::protobuf::Message> ours(prototype.New());
  Require(ours->ParseFromString(bytes), "not a message", text);
  if (!parsed->fixed() || text.find("{{") != std::string::npos) return;

  if (ours->GetDescriptor()->name() == "Old" && text.find("undle") != std::string::npos)
    return;  // it knows no groups
  const std::unique_ptr<google::protobuf::Message> theirs(prototype.New());
  const auto status = google::protobuf::util::JsonStringToMessage(text, theirs.get());
  Require(status.ok(), "protobuf refuses it", text + ": " + std::string(status.message()));
  google::protobuf::util::MessageDifferencer differencer;
  differencer.set_float_comparison(google::protobuf::util::MessageDifferencer::EXACT);
  google::protobuf::util::DefaultFieldComparator comparator;
  comparator.set_treat_nan_as_equal(true);
  differencer.set_field_comparator(&comparator);
  Require(differencer.Compare(*ours, *theirs), "protobuf makes another message of it", text);
}

// A template whose placeholders may name fields of a reply, which has some of them.
void CheckStep(const std::string& text) {
  curtail::loadtest::Nasty reply;
  reply.set_a_string("7");
  reply.set_a_bytes("\xff");
  reply.add_items()->set_weight(3);
  curtail::internal::ReplyFields replies;
  replies.AddStep("s", *reply.GetDescriptor());
  curtail::internal::JsonReader in(text);
  const auto program = curtail::internal::JsonMessageReader(*reply.GetDescriptor(), 1, &replies).Read(&in);
  if (!program.ok() || HasLongNumber(text)) return;
  curtail::KeptValues kept;
  Require(replies.Keep(0, reply.SerializeAsString(), &kept).ok(), "not kept", text);
  absl::Status error;
  curtail::internal::Draw draw(7);
  draw.kept = &kept;
  draw.error = &error;
  const std::string bytes = program->Render(draw);
  Require(!error.ok() || curtail::loadtest::Nasty().ParseFromString(bytes), "not a message", text);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // protobuf logs what it thinks of bad UTF-8 and of the nesting.
  static const google::protobuf::LogSilencer silence;
  if (size == 0) return 0;
  const std::string text = TextOf(data + 1, size - 1);
  if (data[0] % 3 == 2) {
    CheckStep(text);
  } else if (data[0] % 3 == 0) {
    Check(curtail::loadtest::Nasty::default_instance(), text);
  } else {
    Check(curtail::loadtest::Old::default_instance(), text);
  }
  return 0;
}
