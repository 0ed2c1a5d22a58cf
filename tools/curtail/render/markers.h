// SPDX-License-Identifier: Apache-2.0
//
// markers.h - one YAML text for two readers: with the values of a chart in it, or as a template that asks Helm for them.
//
// Plain manifests and the chart are the same documents, so they cannot drift apart: a document is built once, with markers
// where a value of the chart belongs. The markers are
//
//   «services.leaf.replicas»    the value: replicas: «services.leaf.replicas»
//   «?tracing.to»key: ...       this line, and the lines below it that are set in further, only if the value is true
//   «!tracing.to»key: ...       only if it is not
//   «tracing.to:port»           the port of the URL that is the value; 80 if it names none
//   «*imagePullSecrets»: ""     in the line's place all of a map or a list
//   «Release.Name»              no value, but known to Helm; elsewhere `values` has it all the same
//
// A condition stands in front of a key, or in front of an item of a list; a block is a key, maybe after a condition. Pure
// functions; any thread.
#pragma once

#include <string>
#include <string_view>

#include "tools/curtail/render/yaml.h"

namespace curtail::tool {

// "«path»" and "«?path»".
std::string ValueOf(std::string_view path);
std::string If(std::string_view path);
std::string IfNot(std::string_view path);
// "«path:port»" and "«*path»".
std::string PortOfUrl(std::string_view path);
std::string BlockOf(std::string_view path);

// True if the text could be mistaken for one that has markers.
bool HasMarkers(std::string_view text);

// With the values themselves. REQUIRES: `values` has every path.
std::string FillIn(std::string_view text, const Yaml& values);
// With actions of Helm's template language.
std::string AsTemplate(std::string_view text);
// A whole text on a condition, as AsTemplate() has it.
std::string TemplateIf(std::string_view path, std::string_view text);

// The value at "services.leaf.replicas", or "...addresses.3" for an item of a list; null if there is none.
const Yaml* At(const Yaml& values, std::string_view path);

}  // namespace curtail::tool
