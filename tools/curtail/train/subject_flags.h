// SPDX-License-Identifier: Apache-2.0
//
// subject_flags.h - the flags of commands that measure a server under several configs.
#pragma once

#include <CLI/CLI.hpp>

namespace curtail::apps {
struct ApplicationOptions;
}

namespace curtail::tool {

struct SubjectFlags;

// An application that the command starts. Parsing writes into `options`, which outlive `command`.
void AddApplicationFlags(CLI::App& command, apps::ApplicationOptions* options);
// The target and what is sent to it; likewise.
void AddSubjectFlags(CLI::App& command, SubjectFlags* f, const char* targets);

}  // namespace curtail::tool
