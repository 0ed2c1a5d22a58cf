// SPDX-License-Identifier: Apache-2.0
//
// DESIGN. Protobuf's reflection fills the requests, over fields that are looked up once, at the start. Generated code would
// include the messages of the other service, but its .proto imports the .proto of the service that clients call.
#include "apps/kit/accounts/forwarding.h"

#include <map>
#include <memory>
#include <set>
#include <vector>

#include "absl/strings/str_split.h"
#include "access.pb.h"
#include "apps/kit/once.h"
#include "curtail/base/strings.h"
#include "curtail/rpc/coroutine.h"
#include "google/protobuf/message.h"

namespace curtail::apps {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::MessageFactory;
using google::protobuf::MethodDescriptor;
using google::protobuf::Reflection;
using Field = const FieldDescriptor*;
using Copier = void (*)(const Message& from, Field given, Message* to, Field field);

template <auto kGet, auto kSet>
void CopyValue(const Message& from, Field given, Message* to, Field field) {
  (to->GetReflection()->*kSet)(to, field, (from.GetReflection()->*kGet)(from, given));
}

void CopyMessage(const Message& from, Field given, Message* to, Field field) {
  to->GetReflection()->MutableMessage(to, field)->CopyFrom(from.GetReflection()->GetMessage(from, given));
}

void CopyMessages(const Message& from, Field given, Message* to, Field field) {
  const Reflection& reflection = *from.GetReflection();
  for (int i = 0; i < reflection.FieldSize(from, given); ++i)
    to->GetReflection()->AddMessage(to, field)->CopyFrom(reflection.GetRepeatedMessage(from, given, i));
}

void CopyStrings(const Message& from, Field given, Message* to, Field field) {
  const Reflection& reflection = *from.GetReflection();
  for (int i = 0; i < reflection.FieldSize(from, given); ++i)
    to->GetReflection()->AddString(to, field, reflection.GetRepeatedString(from, given, i));
}

// Returns null if the types differ, or are not copied.
Copier CopierOf(const FieldDescriptor& from, const FieldDescriptor& to) {
  static const std::map<FieldDescriptor::CppType, Copier> kValues = {
      {FieldDescriptor::CPPTYPE_INT32, &CopyValue<&Reflection::GetInt32, &Reflection::SetInt32>},
      {FieldDescriptor::CPPTYPE_INT64, &CopyValue<&Reflection::GetInt64, &Reflection::SetInt64>},
      {FieldDescriptor::CPPTYPE_UINT32, &CopyValue<&Reflection::GetUInt32, &Reflection::SetUInt32>},
      {FieldDescriptor::CPPTYPE_UINT64, &CopyValue<&Reflection::GetUInt64, &Reflection::SetUInt64>},
      {FieldDescriptor::CPPTYPE_BOOL, &CopyValue<&Reflection::GetBool, &Reflection::SetBool>},
      {FieldDescriptor::CPPTYPE_ENUM, &CopyValue<&Reflection::GetEnumValue, &Reflection::SetEnumValue>},
      {FieldDescriptor::CPPTYPE_STRING, &CopyValue<&Reflection::GetString, &Reflection::SetString>},
      {FieldDescriptor::CPPTYPE_MESSAGE, &CopyMessage}};
  if (from.type() != to.type() || from.is_repeated() != to.is_repeated() ||
      from.message_type() != to.message_type() || from.enum_type() != to.enum_type())
    return nullptr;
  if (to.is_repeated() && to.cpp_type() == FieldDescriptor::CPPTYPE_STRING) return &CopyStrings;
  if (to.is_repeated()) return to.message_type() != nullptr ? &CopyMessages : nullptr;
  const auto found = kValues.find(to.cpp_type());
  return found == kValues.end() ? nullptr : found->second;
}

bool IsOne(const FieldDescriptor& field, FieldDescriptor::CppType type) {
  return field.cpp_type() == type && !field.is_repeated();
}

struct Copy {
  Field given = nullptr;
  std::vector<Field> to = {};  // with the messages around the field, the outermost first
  Copier run = nullptr;
};

// How one method is answered by another.
struct Forwarding {
  // Reads the option. Returns the mistake in it, or an empty text.
  std::string Read(const MethodDescriptor& method);
  // Reads "TO=GIVEN". Returns as Read().
  std::string ReadCopy(const std::string& text, const Descriptor& given, Copy* copy) const;
  Coroutine Run(Context& ctx, Exchange messages) const;

  const MethodDescriptor* to;
  Channel* channel;
  const Sessions& sessions;
  const std::string path = Join("/", to->service()->full_name(), "/", to->name());
  const Message* const prototype =
      MessageFactory::generated_factory()->GetPrototype(to->input_type());  // of requests
  bool changed = false;                                                     // Nothing becomes Changed
  std::vector<Field> caller = {};
  Field stepped_up = nullptr;
  Copy named = {};
  std::vector<Copy> copies = {};
};

std::string Forwarding::ReadCopy(const std::string& text, const Descriptor& given, Copy* copy) const {
  const std::pair<std::string, std::string> sides = absl::StrSplit(text, absl::MaxSplits('=', 1));
  copy->given = given.FindFieldByName(sides.second);
  if (copy->given == nullptr) return Join(given.full_name(), " has no field \"", sides.second, "\"");
  const Descriptor* type = to->input_type();
  for (const std::string& name : std::vector<std::string>(absl::StrSplit(sides.first, '.'))) {
    const Field field = type != nullptr ? type->FindFieldByName(name) : nullptr;
    if (field == nullptr) return Join(to->input_type()->full_name(), " has no field \"", sides.first, "\"");
    copy->to.push_back(field);
    type = field->is_repeated() ? nullptr : field->message_type();
  }
  return {};
}

std::string Forwarding::Read(const MethodDescriptor& method) {
  const ForwardTo& option = method.options().GetExtension(forward);
  const Descriptor &given = *method.input_type(), &request = *to->input_type();
  for (const MethodDescriptor* each : {&method, to})
    if (each->client_streaming() || each->server_streaming()) return "neither method may stream";
  changed = method.output_type() == Changed::descriptor() && to->output_type() == Nothing::descriptor();
  if (!changed && method.output_type() != to->output_type())
    return Join(to->full_name(), " returns a ", to->output_type()->full_name());
  if (option.caller().empty() != (method.options().GetExtension(access) == PUBLIC))
    return "`caller` goes with methods that are not PUBLIC";

  std::set<Field> set;
  for (const std::string& name : option.caller()) {
    const Field field = caller.emplace_back(request.FindFieldByName(name));
    if (field == nullptr || !IsOne(*field, FieldDescriptor::CPPTYPE_UINT64))
      return Join(request.full_name(), " has no field \"", name, "\" of type uint64");
    set.insert(field);
  }
  if (!option.stepped_up().empty()) {
    stepped_up = request.FindFieldByName(option.stepped_up());
    if (stepped_up == nullptr || !IsOne(*stepped_up, FieldDescriptor::CPPTYPE_BOOL))
      return Join(request.full_name(), " has no field \"", option.stepped_up(), "\" of type bool");
    set.insert(stepped_up);
  }
  if (!option.named().empty()) {
    if (std::string mistake = ReadCopy(option.named(), given, &named); !mistake.empty()) return mistake;
    if (named.to.size() > 1 || !IsOne(*named.to[0], FieldDescriptor::CPPTYPE_UINT64) ||
        !IsOne(*named.given, FieldDescriptor::CPPTYPE_STRING))
      return Join("\"", option.named(), "\" is not an id and a name");
    set.insert(named.to[0]);
  }
  for (const std::string& text : option.copy()) {
    if (std::string mistake = ReadCopy(text, given, &copies.emplace_back()); !mistake.empty()) return mistake;
    set.insert(copies.back().to[0]);
  }
  for (int i = 0; i < request.field_count(); ++i) {
    const Field field = request.field(i), same = given.FindFieldByName(field->name());
    if (same != nullptr && !set.contains(field)) copies.push_back({.given = same, .to = {field}});
  }
  for (Copy& copy : copies) {
    copy.run = CopierOf(*copy.given, *copy.to.back());
    if (copy.run == nullptr)
      return Join("cannot copy ", copy.given->full_name(), " to ", copy.to.back()->full_name());
  }
  return {};
}

Coroutine Forwarding::Run(Context& ctx, Exchange messages) const {
  const Message& given = static_cast<const Message&>(*messages.request);
  const std::unique_ptr<Message> request(prototype->New());
  const Reflection &from = *given.GetReflection(), &fill = *request->GetReflection();
  for (const Copy& copy : copies) {
    if (copy.given->has_presence() && !from.HasField(given, copy.given)) continue;
    Message* target = request.get();
    for (size_t i = 0; i + 1 < copy.to.size(); ++i)
      target = target->GetReflection()->MutableMessage(target, copy.to[i]);
    copy.run(given, copy.given, target, copy.to.back());
  }
  for (const Field field : caller) fill.SetUInt64(request.get(), field, CallerOf(ctx));
  if (!named.to.empty()) {
    const absl::StatusOr<uint64_t> user = co_await sessions.Named(ctx, from.GetString(given, named.given));
    if (!user.ok()) co_return user.status();
    fill.SetUInt64(request.get(), named.to[0], *user);
  }
  if (!caller.empty()) {  // only a caller's request has a name (once.h)
    if (absl::Status status = NameRequest(ctx, path, *request); !status.ok()) co_return status;
  }
  if (stepped_up != nullptr) fill.SetBool(request.get(), stepped_up, SteppedUp(ctx));
  Nothing nothing;
  if (changed) static_cast<Changed*>(messages.reply)->set_changed(true);
  const Method<Message, google::protobuf::MessageLite> called = {path};
  co_return co_await call(ctx, channel, called, *request, changed ? &nothing : messages.reply);
}

}  // namespace

absl::StatusOr<CoroutineHandler> ForwardingOf(const MethodDescriptor& method, const MethodDescriptor* to,
                                              Channel* channel, const Sessions& sessions) {
  const auto wrong = [&](const std::string& mistake) {
    return absl::InvalidArgumentError(Join(method.full_name(), ", option (curtail.apps.forward): ", mistake));
  };
  if (to == nullptr)
    return wrong(Join("there is no method \"", method.options().GetExtension(forward).method(), "\""));
  const auto forwarding = std::make_shared<Forwarding>(Forwarding{to, channel, sessions});
  if (const std::string mistake = forwarding->Read(method); !mistake.empty()) return wrong(mistake);
  return [forwarding](Context& ctx, Exchange messages) { return forwarding->Run(ctx, messages); };
}

}  // namespace curtail::apps
