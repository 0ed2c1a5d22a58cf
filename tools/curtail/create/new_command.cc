// SPDX-License-Identifier: Apache-2.0
//
// `curtail new`: writes an application to begin one's own with.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "apps/shipped/application.h"
#include "curtail/base/embedded_file.h"
#include "curtail/base/strings.h"
#include "curtail/load/report/report.h"
#include "curtail/term/console.h"
#include "curtail/term/exit_code.h"
#include "tools/curtail/term/command.h"

namespace curtail::tool {

std::span<const EmbeddedFile> NewFiles();  // by CMake, of the folder template

namespace {

struct NewFlags {
  std::string application;
  std::string services = "front,catalogue,stock";  // the first is what clients call
};

using Words = std::vector<std::pair<std::string, std::string>>;  // "@app@" and what stands for it

constexpr size_t kMostServices = 50;
constexpr size_t kLongestName = 40;

std::string PascalOf(const std::string& name) {
  std::string pascal;
  bool begins = true;
  for (const char c : name) {
    if (c != '-') pascal += begins ? absl::ascii_toupper(static_cast<unsigned char>(c)) : c;
    begins = c == '-';
  }
  return pascal;
}

std::string MemberOf(const std::string& name) { return absl::StrReplaceAll(name, {{"-", "_"}}); }

// A name must do for C++, protobuf, files and hosts at once.
absl::Status CheckName(const std::string& what, const std::string& name, bool dashes) {
  static const std::set<std::string> taken = {
      "absl",     "answer",    "apps",    "auto",     "bool",     "break",     "build",    "case",
      "char",     "class",     "const",   "curtail",  "default",  "delete",    "do",       "double",
      "else",     "enum",      "export",  "false",    "float",    "for",       "friend",   "gateway",
      "google",   "if",        "int",     "long",     "main",     "namespace", "new",      "operator",
      "private",  "protected", "public",  "question", "register", "request",   "reply",    "return",
      "service",  "services",  "short",   "signed",   "static",   "std",       "struct",   "switch",
      "template", "test",      "this",    "throw",    "true",     "try",       "typename", "union",
      "unsigned", "using",     "virtual", "void",     "while"};
  const bool formed = !name.empty() && name.size() <= kLongestName &&
                      absl::ascii_islower(static_cast<unsigned char>(name[0])) && name.back() != '-' &&
                      std::ranges::all_of(name, [dashes](unsigned char c) {
                        return absl::ascii_islower(c) || absl::ascii_isdigit(c) || (dashes && c == '-');
                      });
  if (!formed) {
    return absl::InvalidArgumentError(
        Join(what, " \"", name, "\": a name starts with a lower-case letter and has lower-case letters",
             dashes ? ", digits and dashes" : " and digits", ", at most ", kLongestName));
  }
  if (apps::IsApplication(name))
    return absl::InvalidArgumentError(
        Join(what, " \"", name, "\": curtail has an application of this name; choose another"));
  if (taken.contains(name))
    return absl::InvalidArgumentError(
        Join(what, " \"", name, "\": C++ or the files that this writes use the name; choose another"));
  return absl::OkStatus();
}

// `with` between what `of` makes of each leaf.
template <class Of>
std::string Each(const std::vector<std::string>& leaves, const char* with, const Of& of) {
  return absl::StrJoin(leaves, with,
                       [&](std::string* out, const std::string& leaf) { out->append(of(leaf)); });
}

Words WordsFor(const std::string& application, const std::vector<std::string>& services) {
  const std::string& entry = services.front();
  const std::vector<std::string> leaves(services.begin() + 1, services.end());
  const std::string version = CURTAIL_VERSION, store = leaves.back();
  return {
      {"@app@", application},
      {"@version@", version.substr(0, version.rfind('.'))},
      {"@entry@", entry},
      {"@Entry@", PascalOf(entry)},
      {"@store@", store},
      {"@leaves@", absl::StrJoin(leaves, ", ")},
      {"@services_in_words@", absl::StrCat("The services ", absl::StrJoin(services, ", "))},
      {"@leaf_protos@", Each(leaves, "",
                             [](const std::string& leaf) {
                               return absl::StrCat("service ", PascalOf(leaf),
                                                   " {\n  rpc Look(Question) returns (Answer);\n}\n");
                             })},
      {"@leaf_entries@", Each(leaves, "",
                              [&](const std::string& leaf) {
                                return absl::StrCat("  ", leaf, ":\n    run: build/", application,
                                                    " --service ", leaf,
                                                    leaf == store ? " --data ${data}\n    keeps: data\n"
                                                                  : "\n    scales: true\n");
                              })},
      {"@members_made@", Each(leaves, ", ",
                              [](const std::string& leaf) {
                                return absl::StrCat(MemberOf(leaf), "_(env.Stub<", PascalOf(leaf), ">(\"",
                                                    leaf, "\"))");
                              })},
      {"@members@", Each(leaves, "",
                         [](const std::string& leaf) {
                           return absl::StrCat("  const ", PascalOf(leaf), "::Stub ", MemberOf(leaf), "_;\n");
                         })},
      {"@replies@", Each(leaves, ", ", [](const std::string& leaf) { return MemberOf(leaf); })},
      {"@reply_addresses@", Each(leaves, ", ", [](const std::string& leaf) { return "&" + MemberOf(leaf); })},
      {"@calls@", Each(leaves, ", ",
                       [](const std::string& leaf) {
                         return absl::StrCat("curtail::Ask(", MemberOf(leaf), "_, ", PascalOf(leaf),
                                             "::kLook, request)");
                       })},
  };
}

std::string TemplateOf(std::string_view name) {
  for (const EmbeddedFile& file : NewFiles()) {
    if (file.name == name) return std::string(file.bytes);
  }
  return {};
}

absl::Status WriteApplication(const NewFlags& flags) {
  if (absl::Status named = CheckName("application", flags.application, /*dashes=*/false); !named.ok())
    return named;
  const std::vector<std::string> services = absl::StrSplit(flags.services, ',');
  std::set<std::string> different = {flags.application};
  for (const std::string& service : services) {
    if (absl::Status named = CheckName("--services", service, /*dashes=*/true); !named.ok()) return named;
    if (!different.insert(service).second)
      return absl::InvalidArgumentError(
          Join("--services: \"", service, "\" is named twice, or is the application's name"));
  }
  if (services.size() < 2 || services.size() > kMostServices)
    return absl::InvalidArgumentError(Join("--services: give 2 to ", kMostServices,
                                           " services; clients call the first, which calls the others"));
  std::error_code error;
  if (std::filesystem::exists(flags.application, error))
    return absl::InvalidArgumentError(
        Join(flags.application, " is there already; remove it, or choose another name"));
  for (const char* folder : {"services", "page"})
    std::filesystem::create_directories(std::filesystem::path(flags.application) / folder, error);
  if (error) return absl::InternalError(Join("cannot make ", flags.application, ": ", error.message()));

  const Words words = WordsFor(flags.application, services);
  absl::Status first;
  const auto write = [&](const std::string& path, std::string_view name, Words more = {}) {
    more.insert(more.end(), words.begin(), words.end());
    first.Update(WriteFile(Join(flags.application, "/", path), absl::StrReplaceAll(TemplateOf(name), more)));
  };
  for (const char* file : {"index.html", "app.js"}) write(Join("page/", file), file);
  for (const char* file :
       {"CMakeLists.txt", "Dockerfile", "topology.yaml", "journey.yaml", "test.sh", "README.md"})
    write(file, file);
  write(".dockerignore", "dockerignore");
  write(Join(flags.application, ".proto"), "app.proto");
  for (size_t i = 0; i < services.size(); ++i) {
    write(Join("services/", services[i], ".cc"),
          i == 0                     ? "entry.cc.in"
          : i + 1 == services.size() ? "store.cc.in"
                                     : "leaf.cc.in",
          {{"@service@", services[i]}, {"@Service@", PascalOf(services[i])}});
  }
  return first;
}

// Writes the folder `application`, which is not there yet. Returns the exit code.
int RunNew(const NewFlags& flags, Console& console) {
  if (absl::Status written = WriteApplication(flags); !written.ok()) {
    const bool asked = absl::IsInvalidArgument(written);
    console.Error(std::string(Message(written)), asked ? "see curtail new --help" : "write elsewhere");
    return asked ? kBadConfig : kFailed;
  }
  console.Print(Join(
      "wrote ", flags.application, "/; next:\n  cd ", flags.application,
      " && cmake -B build && cmake --build build\n  curtail up ./topology.yaml --detach\n  curtail load ",
      flags.application, " --journey journey.yaml --rps 50\n  curtail down ", flags.application, "\n"));
  return kOk;
}

}  // namespace

Command AddNew(CLI::App& app) {
  const auto f = std::make_shared<NewFlags>();
  CLI::App* command = app.add_subcommand("new", "Write an application to begin your own with");
  command->add_option("NAME", f->application, "Its name, and the folder that is made")->required();
  command
      ->add_option("--services", f->services,
                   "Its services; the first is what clients call, and asks the others")
      ->capture_default_str();
  command->footer("Example: curtail new kiosk --services front,catalogue,stock");
  return {command, [f](const Invocation& given) { return RunNew(*f, given.console); }};
}

}  // namespace curtail::tool
