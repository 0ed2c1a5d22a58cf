// SPDX-License-Identifier: Apache-2.0
#include "names.h"

#include <google/protobuf/compiler/cpp/names.h>
#include <google/protobuf/descriptor.pb.h>

#include <algorithm>
#include <array>
#include <map>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace curtail {
namespace {

using google::protobuf::FileDescriptor;
using google::protobuf::MethodDescriptor;
using google::protobuf::ServiceDescriptor;
using google::protobuf::SourceLocation;

// Members of the generated classes, which a method cannot be called as well.
constexpr std::array<absl::string_view, 8> kMemberNames = {
    "FullName", "Handlers", "Service",     "CoroutineService", "ContinuationService",
    "Stub",     "channel_", "never_waits_"};
// The classes among them, which their own class cannot be called as well.
constexpr std::array<absl::string_view, 4> kClassNames = {"Service", "CoroutineService",
                                                          "ContinuationService", "Stub"};
// The name of a continuation handler: this and the method.
constexpr absl::string_view kProcess = "Process";

// Sorted. The keywords of C++20, and NULL.
constexpr std::array<absl::string_view, 93> kKeywords = {
    "NULL",         "alignas",   "alignof",       "and",
    "and_eq",       "asm",       "auto",          "bitand",
    "bitor",        "bool",      "break",         "case",
    "catch",        "char",      "char16_t",      "char32_t",
    "char8_t",      "class",     "co_await",      "co_return",
    "co_yield",     "compl",     "concept",       "const",
    "const_cast",   "consteval", "constexpr",     "constinit",
    "continue",     "decltype",  "default",       "delete",
    "do",           "double",    "dynamic_cast",  "else",
    "enum",         "explicit",  "export",        "extern",
    "false",        "float",     "for",           "friend",
    "goto",         "if",        "inline",        "int",
    "long",         "mutable",   "namespace",     "new",
    "noexcept",     "not",       "not_eq",        "nullptr",
    "operator",     "or",        "or_eq",         "private",
    "protected",    "public",    "register",      "reinterpret_cast",
    "requires",     "return",    "short",         "signed",
    "sizeof",       "static",    "static_assert", "static_cast",
    "struct",       "switch",    "template",      "this",
    "thread_local", "throw",     "true",          "try",
    "typedef",      "typeid",    "typename",      "union",
    "unsigned",     "using",     "virtual",       "void",
    "volatile",     "wchar_t",   "while",         "xor",
    "xor_eq"};

bool IsKeyword(absl::string_view name) {
  return std::binary_search(kKeywords.begin(), kKeywords.end(), name);
}

template <class Names>
bool IsOneOf(const Names& names, absl::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// True if a class written for `service` has a member of this name.
bool IsMember(const ServiceDescriptor& service, const std::string& name) {
  if (IsOneOf(kMemberNames, name) || service.FindMethodByName(name) != nullptr) return true;
  return absl::StartsWith(name, kProcess) &&
         service.FindMethodByName(name.substr(kProcess.size())) != nullptr;
}

template <class Descriptor>
std::string Problem(const Descriptor& where, absl::string_view kind, absl::string_view what) {
  SourceLocation location;
  std::string position = where.file()->name();
  if (where.GetSourceLocation(&location)) {
    absl::StrAppend(&position, ":", location.start_line + 1, ":", location.start_column + 1);
  }
  return absl::StrCat(position, ": ", kind, " \"", where.full_name(), "\" ", what);
}

std::optional<std::string> FindMethodConflict(const ServiceDescriptor& service) {
  std::map<std::string, const MethodDescriptor*> constants;
  for (int i = 0; i < service.method_count(); ++i) {
    const MethodDescriptor& method = *service.method(i);
    if (IsKeyword(method.name())) return Problem(method, "method", "is a C++ keyword; rename it");
    if (IsOneOf(kMemberNames, method.name())) {
      return Problem(method, "method", "has the name of a member of the generated classes; rename it");
    }
    const std::string constant = ConstantName(method.name());
    if (constant == "kServiceName") {
      return Problem(method, "method", "needs the constant kServiceName, which is taken; rename it");
    }
    if (auto [other, added] = constants.emplace(constant, &method); !added) {
      return Problem(method, "method",
                     absl::StrCat("and \"", other->second->name(), "\" both need the constant ", constant,
                                  "; rename one"));
    }
  }
  return std::nullopt;
}

}  // namespace

std::string FileStem(const FileDescriptor& file) {
  return google::protobuf::compiler::cpp::StripProto(file.name());
}

std::string CppNamespace(const FileDescriptor& file) {
  return absl::StrReplaceAll(file.package(), {{".", "::"}});
}

std::string TypeName(const google::protobuf::Descriptor& message, const ServiceDescriptor& service) {
  namespace cpp = google::protobuf::compiler::cpp;
  const std::string name = cpp::ClassName(&message);
  return message.file()->package() == service.file()->package() && !IsMember(service, name)
             ? name
             : cpp::QualifiedClassName(&message);
}

std::string ConstantName(absl::string_view method) {
  std::string name = "k";
  bool capitalize = true;
  for (char c : method) {
    if (c == '_') {
      capitalize = true;
    } else {
      name += capitalize ? absl::ascii_toupper(c) : c;
      capitalize = false;
    }
  }
  return name;
}

std::string CommentLines(const std::string& leading_comments, absl::string_view indent) {
  if (leading_comments.empty()) return "";
  std::string lines;
  for (absl::string_view line : absl::StrSplit(absl::StripTrailingAsciiWhitespace(leading_comments), '\n')) {
    line = absl::StripTrailingAsciiWhitespace(line);
    // A backslash at the end would make the next line of code a comment.
    while (!line.empty() && line.back() == '\\')
      line = absl::StripTrailingAsciiWhitespace(line.substr(0, line.size() - 1));
    absl::StrAppend(&lines, indent, "//", line.empty() || line.front() == ' ' ? "" : " ", line, "\n");
  }
  return lines;
}

std::optional<std::string> FindNameConflict(const FileDescriptor& file) {
  if (file.service_count() > 0 && file.options().cc_generic_services()) {
    return absl::StrCat(file.name(),
                        ": cc_generic_services makes protoc write classes of the same names; remove it");
  }
  for (absl::string_view part : absl::StrSplit(file.package(), '.')) {
    if (file.service_count() > 0 && IsKeyword(part)) {
      return absl::StrCat(file.name(), ": package \"", file.package(), "\" holds the C++ keyword ", part,
                          "; rename it");
    }
  }
  for (int i = 0; i < file.service_count(); ++i) {
    const ServiceDescriptor& service = *file.service(i);
    if (IsKeyword(service.name())) return Problem(service, "service", "is a C++ keyword; rename it");
    if (IsOneOf(kClassNames, service.name())) {
      return Problem(service, "service", "has the name of a member of its own class; rename it");
    }
    if (std::optional<std::string> conflict = FindMethodConflict(service)) return conflict;
  }
  return std::nullopt;
}

}  // namespace curtail
