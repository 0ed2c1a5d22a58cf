// SPDX-License-Identifier: Apache-2.0
//
// names.h - the C++ names of what a .proto file declares, and the ones that cannot be.
#pragma once

#include <google/protobuf/descriptor.h>

#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace curtail {

// "a/b.proto" -> "a/b": the stem protoc uses for a/b.pb.h.
std::string FileStem(const google::protobuf::FileDescriptor& file);

// "a.b" -> "a::b"; empty without a package.
std::string CppNamespace(const google::protobuf::FileDescriptor& file);

// How the classes written for `service` name `message`: "Query", or from the global namespace when it is of
// another package or hidden by a member of theirs.
std::string TypeName(const google::protobuf::Descriptor& message,
                     const google::protobuf::ServiceDescriptor& service);

// The names of what is written for a service and for a method of it: their own, with '_' behind a name that C++ or the
// generated classes use otherwise.
std::string CppServiceName(const google::protobuf::ServiceDescriptor& service);
std::string CppMethodName(const google::protobuf::MethodDescriptor& method);
// The constant of a method. Where two methods need one, or it is taken, '_' is behind that of the later.
std::string ConstantOf(const google::protobuf::MethodDescriptor& method);

// "Query" -> "kQuery", "get_user" -> "kGetUser".
std::string ConstantName(absl::string_view method);

// The comment of a declaration as lines of "// text" that start with `indent`; empty without one.
std::string CommentLines(const std::string& leading_comments, absl::string_view indent);

// The reason why no C++ can be written for `file`, as "x.proto:LINE:COLUMN: ...", or nothing.
std::optional<std::string> FindNameConflict(const google::protobuf::FileDescriptor& file);

}  // namespace curtail
