// SPDX-License-Identifier: Apache-2.0
//
// `curtail render`: writes a topology for Kubernetes, Helm or Docker Compose.
#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "apps/shipped/application.h"
#include "curtail/base/strings.h"
#include "curtail/term/console.h"
#include "curtail/term/exit_code.h"
#include "tools/curtail/deploy/topology_flags.h"
#include "tools/curtail/render/image_name.h"
#include "tools/curtail/render/manifests.h"
#include "tools/curtail/render/markers.h"
#include "tools/curtail/render/workloads.h"
#include "tools/curtail/term/command.h"

namespace curtail::tool {
namespace {

struct RenderFlags {
  std::string application;  // a name, or the path of a topology file
  std::string to;           // kubernetes, helm or compose
  std::string output;       // a folder; empty: stdout
  deploy::TopologyChanges changes;
  RenderOptions options;
};

std::vector<RenderedFile> Rendered(const RenderFlags& flags, const Plan& plan) {
  if (flags.to == "kubernetes") return PlainManifests(plan);
  if (flags.to == "compose") return ComposeFile(plan);
  return HelmChart(plan);
}

absl::Status WriteFiles(const std::string& folder, const std::vector<RenderedFile>& files, Console& console) {
  for (const RenderedFile& file : files) {
    const std::filesystem::path path = std::filesystem::path(folder) / file.path;
    std::error_code error;
    std::filesystem::create_directories(path.parent_path(), error);
    if (error) {
      return absl::InvalidArgumentError(absl::StrCat(path.parent_path().string(), ": ", error.message()));
    }
    if (absl::Status written = console.DeliverTo(path.string(), file.text); !written.ok()) return written;
  }
  return absl::OkStatus();
}

// Says which secrets must be there before the application starts: no file of it can hold them.
void NoteSecrets(const RenderFlags& flags, const Plan& plan, Console& console) {
  for (const std::string& secret : plan.Secrets()) {
    console.Note(flags.to == "compose"
                     ? absl::StrCat("needs a secret: openssl rand -out ", secret,
                                    " 32, readable for its group ", kUser)
                     : absl::StrCat("needs a secret: kubectl create secret generic ",
                                    plan.topology.application, "-", secret, " --from-literal=", secret,
                                    "=$(openssl rand -hex 32)"));
  }
}

// Returns the exit code.
int RunRender(const RenderFlags& flags, Console& console) {
  const auto fail = [&console](const absl::Status& status, const std::string& hint) {
    console.Error(std::string(Message(status)), hint);
    return kBadConfig;
  };
  if (flags.to == "helm" && flags.output.empty()) {
    return fail(absl::InvalidArgumentError("a chart is several files"), "say where: --output DIR");
  }
  for (const auto& [flag, image] :
       {std::pair("--image", &flags.options.image), {"--dashboard-image", &flags.options.dashboard_image}}) {
    if (!image->empty() && !IsImageName(*image)) {
      return fail(
          absl::InvalidArgumentError(absl::StrCat(flag, ": '", *image, "' is not the name of an image")),
          "write NAME:TAG, the name in lower-case letters, such as registry.example/shop:1.0");
    }
  }
  absl::StatusOr<deploy::Topology> topology =
      apps::LoadTopology(flags.application, deploy::ServicesAlone(flags.changes));
  if (!topology.ok()) return fail(topology.status(), "");
  if (absl::Status whole = topology->Check(); !whole.ok()) return fail(whole, "");
  RenderOptions options = flags.options;
  options.image_has_curtail = apps::IsApplication(flags.application);
  const absl::StatusOr<Plan> plan = MakePlan(*std::move(topology), options);
  if (!plan.ok()) return fail(plan.status(), "docs/kubernetes.md says how a topology maps to a cluster");
  const std::vector<RenderedFile> files = Rendered(flags, *plan);
  NoteSecrets(flags, *plan, console);
  if (!plan->dashboard.empty() && !At(plan->values, "dashboard.enabled")->IsTrue()) {
    console.Note(
        "the dashboard is off, as this application's image may lack the program curtail; "
        "--dashboard-image IMAGE names one that has it");
  }
  if (flags.output.empty()) {
    std::string all;
    for (const RenderedFile& file : files) all += file.text;
    const absl::Status delivered = console.Deliver(all);
    return delivered.ok() ? kOk : (console.Error(std::string(Message(delivered)), ""), kFailed);
  }
  if (absl::Status written = WriteFiles(flags.output, files, console); !written.ok()) {
    console.Error(std::string(Message(written)), "--output takes a folder that can be written to");
    return kFailed;
  }
  const char* const next = flags.to == "kubernetes" ? "kubectl apply -f "
                           : flags.to == "helm"     ? "helm install NAME "
                                                    : "docker compose up --detach, in ";
  console.Print(absl::StrCat(files.size(), files.size() == 1 ? " file in " : " files in ", flags.output,
                             "; next: ", next, flags.output, "\n"));
  return kOk;
}

constexpr char kRenderExamples[] =
    R"(Writes the topology of an application for machines that a cluster manages: plain manifests, a Helm chart, which is the same
with its values to choose, or a Compose file for one machine. The pods run the programs that `curtail up` starts. `./dev image APP`
builds the image. For an application of your own, the Dockerfile of `curtail new` does. docs/kubernetes.md has the next steps.

Examples:
  curtail render hdsearch --to kubernetes | kubectl apply -f -
  curtail render hdsearch --to helm --output chart --image registry.example/hdsearch:1.0
  curtail render router --to kubernetes --output router --set leaf.shards=2 --set store.shards=2
  curtail render router --to helm --output chart --use store=cache-0:11211,cache-1:11211 --set store.shards=1 --set leaf.shards=1
  curtail render ./shop.yaml --to compose --output shop

Exit codes: 0 ok, 1 the output cannot be written, 104 bad flags or topology.)";

}  // namespace

Command AddRender(CLI::App& app) {
  const auto f = std::make_shared<RenderFlags>();
  CLI::App* command =
      app.add_subcommand("render", "Write an application for Kubernetes, Helm or Docker Compose");
  command->add_option("APP", f->application, apps::ApplicationNames() + ", or a topology file")->required();
  command->add_option("--to", f->to, "kubernetes, helm or compose")
      ->required()
      ->check(CLI::IsMember({"kubernetes", "helm", "compose"}));
  command->add_option("-o,--output", f->output,
                      "A folder for the files [kubernetes, compose: the standard output]");
  command->add_option("--image", f->options.image, "The image of the application [APP:VERSION]");
  command->add_option("--dashboard-image", f->options.dashboard_image,
                      "An image with the program curtail, for the dashboard [that of the application]");
  AddTopologyFlags(*command, &f->changes);
  command->footer(kRenderExamples);
  return {command, [f](const Invocation& given) { return RunRender(*f, given.console); }};
}

}  // namespace curtail::tool
