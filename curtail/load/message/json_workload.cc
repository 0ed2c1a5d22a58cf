// SPDX-License-Identifier: Apache-2.0
#include "curtail/load/message/json_workload.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <vector>

#include "curtail/base/strings.h"
#include "curtail/load/message/choice.h"
#include "curtail/load/message/internal/json_message.h"
#include "curtail/load/message/internal/json_reader.h"
#include "curtail/load/message/json_template.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/dynamic_message.h"
#include "google/protobuf/util/json_util.h"

namespace curtail {
namespace {

using google::protobuf::Descriptor;
using internal::JsonReader;

struct CloseFile {
  void operator()(std::FILE* file) const {
    if (file != stdin) std::fclose(file);
  }
};

absl::Status FileError(const std::string& name, const char* what, int error) {
  if (error == EISDIR) return absl::InvalidArgumentError(Join(name, " is a folder; name a file"));
  const absl::Status status = absl::ErrnoToStatus(error, Join("cannot ", what, " ", name));
  return error == EACCES ? absl::InvalidArgumentError(status.message()) : status;
}

// Reads the templates of one text: a list of them, or one after the other.
class TemplatesReader {
 public:
  TemplatesReader(const Descriptor& type, std::string_view text, const std::string& name, uint64_t seed)
      : in_(text, name), messages_(type, seed) {}

  absl::StatusOr<std::vector<JsonTemplate>> Read() {
    absl::Status status = in_.Peek() == JsonReader::Kind::kArray ? ReadList() : ReadSequence();
    if (!status.ok()) return status;
    if (templates_.empty()) return in_.Error(0, "there is no request in the JSON text");
    return std::move(templates_);
  }

 private:
  absl::Status ReadList() {
    absl::Status status;
    const auto read = [&] { return (status = ReadOne()).ok(); };
    if (!in_.ForEachElement(read)) return status.ok() ? in_.status() : status;
    if (in_.Peek() == JsonReader::Kind::kEnd) return absl::OkStatus();
    return in_.Error(in_.NextOffset(), "more text follows the list of requests");
  }

  absl::Status ReadSequence() {
    while (in_.Peek() != JsonReader::Kind::kEnd) {
      if (absl::Status status = ReadOne(); !status.ok()) return status;
    }
    return absl::OkStatus();
  }

  absl::Status ReadOne() {
    absl::StatusOr<internal::MessageProgram> program = messages_.Read(&in_);
    if (!program.ok()) return program.status();
    templates_.emplace_back(*std::move(program));
    return absl::OkStatus();
  }

  JsonReader in_;
  internal::JsonMessageReader messages_;
  std::vector<JsonTemplate> templates_;
};

class JsonWorkload final : public Workload {
 public:
  JsonWorkload(std::string method, std::vector<JsonTemplate> templates, ItemChoice choice)
      : method_(std::move(method)),
        templates_(std::move(templates)),
        choice_(std::move(choice)),
        repeats_(choice_.spec() == "in-turn" &&
                 std::all_of(templates_.begin(), templates_.end(),
                             [](const JsonTemplate& t) { return t.fixed(); })) {}

  std::string_view method() const override { return method_; }
  uint64_t distinct() const override { return repeats_ ? templates_.size() : 0; }
  std::string Request(uint64_t index) const override {
    return templates_[choice_.Index(index)].Render(index);
  }

 private:
  // Immutable after construction.
  const std::string method_;
  const std::vector<JsonTemplate> templates_;
  const ItemChoice choice_;
  const bool repeats_;
};

absl::StatusOr<std::string> ToJson(const Descriptor& type, std::string_view bytes) {
  google::protobuf::DynamicMessageFactory factory(type.file()->pool());
  const std::unique_ptr<google::protobuf::Message> message(factory.GetPrototype(&type)->New());
  if (!message->ParsePartialFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return absl::InternalError(Join(bytes.size(), " bytes are not a message of type ", type.full_name()));
  }
  google::protobuf::util::JsonPrintOptions options;
  options.add_whitespace = true;
  options.preserve_proto_field_names = true;
  std::string json;
  const auto status = google::protobuf::util::MessageToJsonString(*message, &json, options);
  if (status.ok()) return json;
  return absl::InternalError(Join("a message of type ", type.full_name(),
                                  " cannot be written as JSON: ", std::string(status.message())));
}

}  // namespace

absl::StatusOr<JsonSource> ReadJsonFile(const std::string& name) {
  const std::unique_ptr<std::FILE, CloseFile> file(name == "-" ? stdin : std::fopen(name.c_str(), "re"));
  if (file == nullptr) return FileError(name, "open", errno);
  JsonSource source{.name = name == "-" ? "standard input" : name};
  std::string& text = source.text;
  size_t size = 0;
  do {
    constexpr size_t kBlock = 1 << 20;
    text.resize(size + kBlock);
    size += std::fread(text.data() + size, 1, kBlock, file.get());
    if (std::ferror(file.get()) != 0) return FileError(name, "read", errno);
    if (size > JsonSource::kMaxBytes) {
      return absl::ResourceExhaustedError(Join(name, " holds more than ", JsonSource::kMaxBytes, " bytes"));
    }
  } while (std::feof(file.get()) == 0);
  text.resize(size);
  if (text.starts_with("\xef\xbb\xbf")) text.erase(0, 3);  // a byte order mark
  return source;
}

absl::StatusOr<std::unique_ptr<Workload>> MakeJsonWorkload(const CatalogMethod& method,
                                                           const JsonSource& source, uint64_t seed) {
  if (source.text.size() > JsonSource::kMaxBytes) {
    return absl::ResourceExhaustedError(Join("more than ", JsonSource::kMaxBytes, " bytes of JSON"));
  }
  TemplatesReader reader(*method.descriptor->input_type(), source.text, source.name, seed);
  absl::StatusOr<std::vector<JsonTemplate>> templates = reader.Read();
  if (!templates.ok()) return templates.status();
  absl::StatusOr<ItemChoice> choice = ParseItemChoice(source.choice, templates->size(), seed);
  if (!choice.ok()) return choice.status();
  return std::make_unique<JsonWorkload>(method.path, *std::move(templates), *std::move(choice));
}

absl::StatusOr<std::string> RequestToJson(const CatalogMethod& method, std::string_view bytes) {
  return ToJson(*method.descriptor->input_type(), bytes);
}

absl::StatusOr<std::string> ReplyToJson(const CatalogMethod& method, std::string_view bytes) {
  return ToJson(*method.descriptor->output_type(), bytes);
}

}  // namespace curtail
