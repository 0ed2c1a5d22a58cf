// SPDX-License-Identifier: Apache-2.0
#include "curtail/load/message/catalog.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
#include <set>

#include "curtail/base/internal/closest.h"
#include "curtail/base/read_file.h"
#include "curtail/base/strings.h"
#include "curtail/load/message/internal/reflection_client.h"
#include "google/protobuf/compiler/importer.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/descriptor.pb.h"
#include "google/protobuf/descriptor_database.h"
#include "google/protobuf/stubs/logging.h"

namespace curtail {
namespace {

using google::protobuf::DescriptorDatabase;
using google::protobuf::DescriptorPool;
using google::protobuf::FileDescriptor;
using google::protobuf::FileDescriptorProto;
using google::protobuf::MethodDescriptor;
using google::protobuf::MethodOptions;
using google::protobuf::ServiceDescriptor;
using google::protobuf::compiler::DiskSourceTree;
using google::protobuf::compiler::MultiFileErrorCollector;
using google::protobuf::compiler::SourceTreeDescriptorDatabase;
using internal::ProtoFiles;

struct MethodName {
  std::string service;
  std::string method;
};

absl::StatusOr<MethodName> ParseName(std::string_view name) {
  const std::string_view bare = name.starts_with('/') ? name.substr(1) : name;
  const size_t slash = bare.find('/');
  const size_t cut = slash == std::string_view::npos ? bare.rfind('.') : slash;
  if (cut == std::string_view::npos || cut == 0 || cut + 1 == bare.size() ||
      bare.find('/', cut + 1) != std::string_view::npos) {
    return absl::InvalidArgumentError(Join("\"", name, "\" is not a method: write package.Service/Method"));
  }
  return MethodName{std::string(bare.substr(0, cut)), std::string(bare.substr(cut + 1))};
}

// The first error of a file that could not be built.
class FirstError final : public DescriptorPool::ErrorCollector {
 public:
  void AddError(const std::string& file, const std::string& element, const google::protobuf::Message*,
                ErrorLocation, const std::string& message) override {
    if (text_.empty()) text_ = Join(file, ": ", element, ": ", message);
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

// Builds files after those they import.
class FileBuilder {
 public:
  FileBuilder(const ProtoFiles& files, DescriptorPool* pool) : files_(files), pool_(pool) {}

  // Returns the services of files that could not be built, and why.
  std::map<std::string, std::string> BuildAll() {
    std::map<std::string, std::string> broken;
    for (const auto& [name, file] : files_) Build(name);
    for (const auto& [name, error] : errors_) {
      const FileDescriptorProto& file = files_.at(name);
      for (const auto& service : file.service()) {
        broken[Join(file.package(), file.package().empty() ? "" : ".", service.name())] = error;
      }
    }
    return broken;
  }

 private:
  // kMaxFiles bounds the depth.
  void Build(const std::string& name) {
    const auto file = files_.find(name);
    if (file == files_.end() || !begun_.insert(name).second) return;
    for (const std::string& import : file->second.dependency()) Build(import);
    FirstError error;
    if (pool_->BuildFileCollectingErrors(file->second, &error) == nullptr) errors_[name] = error.text();
  }

  const ProtoFiles& files_;
  DescriptorPool* const pool_;
  std::set<std::string> begun_;
  std::map<std::string, std::string> errors_;
};

// google/*.proto as linked into the program, for machines without those files: google/protobuf, and what else the program has.
class WellKnownFiles final : public DescriptorDatabase {
 public:
  bool FindFileByName(const std::string& name, FileDescriptorProto* output) override {
    const FileDescriptor* file =
        name.starts_with("google/") ? DescriptorPool::generated_pool()->FindFileByName(name) : nullptr;
    if (file != nullptr) file->CopyTo(output);
    return file != nullptr;
  }
  bool FindFileContainingSymbol(const std::string&, FileDescriptorProto*) override { return false; }
  bool FindFileContainingExtension(const std::string&, int, FileDescriptorProto*) override { return false; }
};

// The error that the parser finds: "file:line:column: message".
class ParserErrors final : public MultiFileErrorCollector {
 public:
  void AddError(const std::string& file, int line, int column, const std::string& message) override {
    // The parser counts from 0, and says -1 for a file as a whole.
    if (!missing_.empty()) {  // further errors follow from it
      if (place_.empty() && line >= 0 && message.starts_with(Join("Import \"", missing_, "\"")))
        place_ = Join(file, ":", line + 1, ": ");
      return;
    }
    if (line < 0 && message.starts_with("File not found")) {
      missing_ = file;
      return;
    }
    if (count_++ == 0)
      text_ =
          line < 0 ? Join(file, ": ", message) : Join(file, ":", line + 1, ":", column + 1, ": ", message);
  }
  absl::Status status() const {
    if (!missing_.empty() && count_ == 0) {
      const bool shipped = missing_.starts_with("google/api/");  // paths of HTTP, for curtail_proto()
      return absl::InvalidArgumentError(
          Join(place_, "cannot find import \"", missing_, "\"; name its folder with --import-path",
               shipped ? ": share/curtail/proto of an installation of curtail has it" : ""));
    }
    return absl::InvalidArgumentError(count_ <= 1 ? text_ : Join(text_, " (and ", count_ - 1, " more)"));
  }

 private:
  std::string text_ = "the file cannot be used";
  std::string missing_, place_;  // an import, and where it is named
  int count_ = 0;
};

// .proto files on disk; the descriptors are taken from them as they are needed.
struct DiskFiles {
  DiskFiles() : database(&tree, &well_known) { database.RecordErrorsTo(&errors); }

  // The name of `file` below an import path.
  absl::StatusOr<std::string> VirtualName(const std::string& file) {
    std::string name;
    std::string shadow;
    switch (tree.DiskFileToVirtualFile(file, &name, &shadow)) {
      case DiskSourceTree::SUCCESS:
        return name;
      case DiskSourceTree::SHADOWED:
        return absl::InvalidArgumentError(
            Join(file, " is hidden by ", shadow, ", which comes first among the import paths"));
      default:
        break;
    }
    if (std::unique_ptr<google::protobuf::io::ZeroCopyInputStream>(tree.Open(file)) != nullptr) return file;
    std::error_code ignored;
    if (std::filesystem::is_directory(file, ignored))
      return absl::InvalidArgumentError(Join(file, " is a folder; name a .proto file"));
    if (!std::filesystem::exists(file, ignored))
      return absl::NotFoundError(Join("cannot find ", file, ", here or in an --import-path"));
    if (access(file.c_str(), R_OK) != 0)
      return absl::InvalidArgumentError(Join("cannot read ", file, ": ", std::strerror(errno)));
    return absl::InvalidArgumentError(Join(file, " is in none of the folders of --import-path; add its own"));
  }

  WellKnownFiles well_known;
  DiskSourceTree tree;
  ParserErrors errors;
  SourceTreeDescriptorDatabase database;
};

constexpr size_t kMaxDescriptorSet = 64u << 20;

// By the names that protoc's users, grpcurl's and buf's give them.
bool IsDescriptorSet(const std::string& file) {
  return file.ends_with(".protoset") || file.ends_with(".binpb") || file.ends_with(".desc") ||
         file.ends_with(".pb");
}

CatalogMethod Describe(const MethodDescriptor& method) {
  return {.path = Join("/", method.service()->full_name(), "/", method.name()),
          .request_type = method.input_type()->full_name(),
          .reply_type = method.output_type()->full_name(),
          .client_streaming = method.client_streaming(),
          .server_streaming = method.server_streaming(),
          .idempotent = method.options().idempotency_level() != MethodOptions::IDEMPOTENCY_UNKNOWN,
          .descriptor = &method};
}

}  // namespace

// Immutable once it is in a Catalog; the pool, which builds lazily from files on disk, locks itself.
struct Catalog::Impl {
  explicit Impl(std::string name) : origin(std::move(name)), pool(std::make_unique<DescriptorPool>()) {}

  std::string origin;  // for errors: the target, or "the .proto files"
  std::unique_ptr<DiskFiles> disk;
  std::unique_ptr<DescriptorPool> pool;
  std::vector<std::string> services;
  std::map<std::string, absl::Status> broken;  // services that could not be described, and why
};

absl::StatusOr<Catalog> Catalog::FromServer(const std::string& target, const ChannelOptions& options,
                                            Nanos timeout, std::string_view method,
                                            const Metadata& metadata) {
  std::string only;
  if (!method.empty()) {
    const absl::StatusOr<MethodName> name = ParseName(method);
    if (!name.ok()) return name.status();
    only = name->service;
  }
  internal::ReflectionClient server(target, options, Deadline::In(timeout), metadata);
  absl::StatusOr<std::vector<std::string>> services = server.ListServices();
  if (!services.ok()) return services.status();

  auto impl = std::make_shared<Impl>(target);
  impl->services = *std::move(services);
  ProtoFiles files;
  for (const std::string& service : impl->services) {
    if (!only.empty() && service != only) continue;
    absl::Status status = server.FetchSymbol(service, &files);
    // No answer at all ends the matter; of a server's refusal other services need know nothing.
    if (absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status)) return status;
    if (!status.ok()) impl->broken.emplace(service, std::move(status));
  }
  for (const auto& [service, error] : FileBuilder(files, impl->pool.get()).BuildAll()) {
    impl->broken.emplace(service,
                         absl::DataLossError(Join("what ", target, " says of ", service, " is wrong: ", error,
                                                  "; name its .proto file with --proto")));
  }
  return Catalog(std::move(impl));
}

absl::StatusOr<Catalog> Catalog::FromProtoFiles(const std::vector<std::string>& files,
                                                const std::vector<std::string>& import_paths) {
  if (std::ranges::any_of(files, IsDescriptorSet)) return FromDescriptorSets(files);
  auto impl = std::make_shared<Impl>("the .proto files");
  impl->disk = std::make_unique<DiskFiles>();
  DiskFiles& disk = *impl->disk;
  const google::protobuf::LogSilencer silent;  // the parser writes its warnings to the standard error
  for (const std::string& path : import_paths) disk.tree.MapPath("", path);
  for (const std::string& file : files) {
    const std::string folder = std::filesystem::path(file).parent_path().string();
    if (import_paths.empty()) disk.tree.MapPath("", folder.empty() ? "." : folder);
  }
  if (import_paths.empty()) disk.tree.MapPath("", ".");
  impl->pool = std::make_unique<DescriptorPool>(&disk.database, disk.database.GetValidationErrorCollector());
  for (const std::string& file : files) {
    const absl::StatusOr<std::string> name = disk.VirtualName(file);
    if (!name.ok()) return name.status();
    const FileDescriptor* built = impl->pool->FindFileByName(*name);
    if (built == nullptr) return disk.errors.status();
    for (int i = 0; i < built->service_count(); ++i) impl->services.push_back(built->service(i)->full_name());
  }
  return Catalog(std::move(impl));
}

absl::StatusOr<Catalog> Catalog::FromDescriptorSets(const std::vector<std::string>& files) {
  auto impl = std::make_shared<Impl>("the descriptor sets");
  ProtoFiles all;
  for (const std::string& file : files) {
    if (!IsDescriptorSet(file))
      return absl::InvalidArgumentError(Join(file, ": .proto files and descriptor sets do not go together"));
    const absl::StatusOr<std::string> bytes = ReadWholeFile(file, kMaxDescriptorSet);
    if (!bytes.ok()) return bytes.status();
    google::protobuf::FileDescriptorSet set;
    if (!set.ParseFromString(*bytes) || set.file_size() == 0) {
      return absl::InvalidArgumentError(
          Join(file, " is not a descriptor set; protoc --include_imports --descriptor_set_out=", file,
               " writes one"));
    }
    for (FileDescriptorProto& each : *set.mutable_file()) {
      const std::string name = each.name();
      all.emplace(name, std::move(each));
    }
  }
  // Sets that were written without their imports lack these.
  std::vector<FileDescriptorProto> lacking;
  for (const auto& [name, file] : all) {
    for (const std::string& import : file.dependency()) {
      FileDescriptorProto known;
      if (!all.contains(import) && WellKnownFiles().FindFileByName(import, &known))
        lacking.push_back(std::move(known));
    }
  }
  for (FileDescriptorProto& file : lacking) all.emplace(std::string(file.name()), std::move(file));
  for (const auto& [service, error] : FileBuilder(all, impl->pool.get()).BuildAll()) {
    impl->broken.emplace(service,
                         absl::InvalidArgumentError(
                             Join(service, ": ", error, "; write the set with protoc --include_imports")));
  }
  for (const auto& [name, file] : all) {
    for (const auto& service : file.service())
      impl->services.push_back(Join(file.package(), file.package().empty() ? "" : ".", service.name()));
  }
  return Catalog(std::move(impl));
}

bool Catalog::Describes(std::string_view name) const {
  const absl::StatusOr<MethodName> wanted = ParseName(name);
  return wanted.ok() && impl_->pool->FindServiceByName(wanted->service) != nullptr;
}

absl::StatusOr<CatalogMethod> Catalog::FindMethod(std::string_view name, bool streaming) const {
  const absl::StatusOr<MethodName> wanted = ParseName(name);
  if (!wanted.ok()) return wanted.status();
  if (const auto broken = impl_->broken.find(wanted->service); broken != impl_->broken.end())
    return broken->second;
  const ServiceDescriptor* service = impl_->pool->FindServiceByName(wanted->service);
  if (service == nullptr) {
    return absl::NotFoundError(Join("there is no service ", wanted->service, " in ", impl_->origin,
                                    internal::NamesHint(wanted->service, impl_->services)));
  }
  const MethodDescriptor* method = service->FindMethodByName(wanted->method);
  if (method == nullptr) {
    std::vector<std::string> names;
    for (int i = 0; i < service->method_count(); ++i) names.push_back(service->method(i)->name());
    return absl::NotFoundError(Join("the service ", wanted->service, " has no method \"", wanted->method,
                                    "\"", internal::NamesHint(wanted->method, names)));
  }
  CatalogMethod found = Describe(*method);
  if (found.unary() != streaming) return found;
  if (streaming) {
    return absl::InvalidArgumentError(
        Join(wanted->service, "/", wanted->method, " does not stream; leave --stream out"));
  }
  const char* what = !found.server_streaming  ? "requests"
                     : found.client_streaming ? "requests and replies"
                                              : "replies";
  return absl::InvalidArgumentError(
      Join(wanted->service, "/", wanted->method, " streams ", what, "; say with --stream N how to call it"));
}

std::vector<CatalogMethod> Catalog::ListMethods() const {
  std::vector<CatalogMethod> methods;
  for (const std::string& name : impl_->services) {
    const ServiceDescriptor* service = impl_->pool->FindServiceByName(name);
    for (int i = 0; service != nullptr && i < service->method_count(); ++i)
      methods.push_back(Describe(*service->method(i)));
  }
  return methods;
}

std::vector<std::string> Catalog::IdempotentMethods() const {
  std::vector<std::string> paths;
  for (const CatalogMethod& method : ListMethods()) {
    if (method.unary() && method.idempotent) paths.push_back(method.path);
  }
  return paths;
}

const std::vector<std::string>& Catalog::services() const { return impl_->services; }

}  // namespace curtail
