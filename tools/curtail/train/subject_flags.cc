// SPDX-License-Identifier: Apache-2.0
#include "tools/curtail/train/subject_flags.h"

#include "apps/shipped/application.h"
#include "tools/curtail/load/request_flags.h"
#include "tools/curtail/train/subject.h"

namespace curtail::tool {

void AddApplicationFlags(CLI::App& app, apps::ApplicationOptions* o) {
  const char* const group = "Application";
  app.add_option("--corpus", o->data, kCorpusHelp)->group(group);
  AddOwnOptions(app, group, [o](const std::string& name, const std::string& value) { o->own[name] = value; });
  app.add_option("--leaves", o->leaves, "Leaves, or shards of them [as in its topology]")
      ->check(CLI::Range(1, 64))
      ->group(group);
  app.add_option("--leaf-config", o->leaf_config, "Threading model of the leaves [as in its topology]")
      ->group(group);
  app.add_option("--program", o->program, "The program of the tiers; found beside this one by default")
      ->group(group);
}

void AddSubjectFlags(CLI::App& app, SubjectFlags* f, const char* targets) {
  AddTargetFlags(app, &f->load, targets);
  AddMessageFlags(app, &f->load);
  app.add_option("--timeout", f->load.timeout, "A call that takes longer has failed")->capture_default_str();
  app.add_option("--admin", f->admin, "Admin address of a server that runs already")->group("Target");
  AddApplicationFlags(app, &f->application);
}

}  // namespace curtail::tool
