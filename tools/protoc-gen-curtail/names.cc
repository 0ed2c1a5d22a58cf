// SPDX-License-Identifier: Apache-2.0
#include "names.h"

#include <google/protobuf/compiler/cpp/names.h>
#include <google/protobuf/descriptor.pb.h>

#include <algorithm>
#include <array>
#include <set>

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

// Members of the generated classes, which a method cannot be called as well.
constexpr std::array<absl::string_view, 8> kMemberNames = {
    "FullName", "Handlers", "Service",     "CoroutineService", "ContinuationService",
    "Stub",     "channel_", "never_waits_"};
// The classes among them, which their own class cannot be called as well.
constexpr std::array<absl::string_view, 4> kClassNames = {"Service", "CoroutineService",
                                                          "ContinuationService", "Stub"};
// Parameters and variables of what is written, which hide messages of these names.
constexpr std::array<absl::string_view, 11> kLocals = {"channel",     "ctx",    "handlers", "metadata",
                                                       "never_waits", "reader", "reply",    "request",
                                                       "responder",   "stream", "writer"};
// Macros of common systems.
constexpr std::array<absl::string_view, 11> kMacros = {
    "EOF", "errno", "assert", "linux", "unix", "stdin", "stdout", "stderr", "major", "minor", "makedev"};
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

// `name`, or with as many '_' behind it as make it free: `bad` are names that it cannot have, `declared` those that the file
// gives to something else.
template <class Bad, class Declared>
std::string FreeName(std::string name, Bad bad, Declared declared) {
  if (!bad(name)) return name;
  do name += '_';
  while (bad(name) || declared(name));
  return name;
}

bool IsMacro(absl::string_view name) { return IsOneOf(kMacros, name); }

// True if a class written for `service` has a member of this name.
bool IsMember(const ServiceDescriptor& service, const std::string& name) {
  if (IsOneOf(kMemberNames, name)) return true;
  for (int i = 0; i < service.method_count(); ++i) {
    const std::string method = CppMethodName(*service.method(i));
    if (name == method || name == absl::StrCat(kProcess, method)) return true;
  }
  return false;
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
  return message.file()->package() == service.file()->package() && !IsMember(service, name) &&
                 !IsOneOf(kLocals, name)
             ? name
             : cpp::QualifiedClassName(&message);
}

std::string CppServiceName(const ServiceDescriptor& service) {
  return FreeName(
      service.name(),
      [](const std::string& name) { return IsKeyword(name) || IsMacro(name) || IsOneOf(kClassNames, name); },
      [&](const std::string& name) {
        const FileDescriptor& file = *service.file();
        const std::string full = file.package().empty() ? name : absl::StrCat(file.package(), ".", name);
        return file.pool()->FindFileContainingSymbol(full) != nullptr;
      });
}

std::string CppMethodName(const MethodDescriptor& method) {
  return FreeName(
      method.name(),
      [](const std::string& name) { return IsKeyword(name) || IsMacro(name) || IsOneOf(kMemberNames, name); },
      [&](const std::string& name) { return method.service()->FindMethodByName(name) != nullptr; });
}

std::string ConstantOf(const MethodDescriptor& method) {
  std::set<std::string> taken = {"kServiceName"};
  for (int i = 0;; ++i) {
    const MethodDescriptor& each = *method.service()->method(i);
    const auto is_taken = [&](const std::string& name) { return taken.count(name) > 0; };
    std::string constant = FreeName(ConstantName(each.name()), is_taken, is_taken);
    if (&each == &method) return constant;
    taken.insert(std::move(constant));
  }
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
  return std::nullopt;
}

}  // namespace curtail
