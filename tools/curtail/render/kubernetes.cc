// SPDX-License-Identifier: Apache-2.0
//
// DESIGN. An instance of the topology is a Service without an address of its own, so that its name resolves to its pods and
// callers balance among them, and a Deployment; or a StatefulSet with a volume, if it keeps data. Programs that are no
// curtail services look their callees up once, and are looked up once, hence their Service has an address.
//
// There is no hook before the end of a pod: a curtail service that gets SIGTERM says goodbye to its clients and answers
// what is under way, and a client makes a call that no server has seen elsewhere. A gateway has clients of HTTP, whom only
// the address of its Service sends elsewhere: it serves on until the cluster has left it out of that.
#include "tools/curtail/render/kubernetes.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tools/curtail/render/dashboard_objects.h"
#include "tools/curtail/render/markers.h"
#include "tools/curtail/render/object_parts.h"

namespace curtail::tool {
namespace {

constexpr int kKeptSeconds = 600;  // the job of a load test, after its end

class Objects : private ObjectParts {
 public:
  explicit Objects(const Plan& plan)
      : ObjectParts(plan.topology.application), plan_(plan), application_(plan.topology.application) {}

  Yaml LoadJob(const std::vector<std::string>& command) const {
    Yaml pod = PodBase();
    pod.Add("restartPolicy", "Never");
    // The command that fills the stores may leave files in the folder of data that requests need, such as sessions.
    const auto& prepare = plan_.prepare;
    std::map<std::string, std::string> secrets;
    if (std::find(prepare.begin(), prepare.end(), kDataFolder) != prepare.end()) {
      pod.Add("initContainers", Yaml::List({PrepareContainer()}));
      secrets = plan_.topology.prepare_secrets;
    }
    std::vector<std::string> words = command;
    words.push_back(If("tls.secret") + "--tls");
    words.push_back(absl::StrCat(If("tls.secret"), "--ca=", kTlsFolder, "/ca.crt"));
    Yaml load = JobContainer("load", words, /*secrets=*/false);
    // Without a limit of CPU: a generator that is stopped measures itself.
    load.Add("resources", Yaml::Map({{"requests", Yaml::Map({{"cpu", "100m"}, {"memory", "64Mi"}})},
                                     {"limits", Yaml::Map({{"memory", "2Gi"}})}}));
    pod.Add("containers", Yaml::List({std::move(load)}));
    Yaml job = Yaml::Map({{"apiVersion", "batch/v1"}, {"kind", "Job"}});
    job.Add("metadata", Yaml::Map({{"generateName", application_ + "-load-"},
                                   {"labels", WithReleaseLabels(ServiceLabels("load"))}}));
    // It is removed by who made it; if that is not to be, by the cluster.
    Yaml spec = Yaml::Map({{"backoffLimit", 0}, {"ttlSecondsAfterFinished", kKeptSeconds}});
    spec.Add("template", JobPod("load", secrets, std::move(pod)));
    return job.Add("spec", std::move(spec));
  }

  std::vector<ObjectFile> All() const {
    std::vector<ObjectFile> files;
    for (const ServicePlan& service : plan_.services) files.push_back(OfService(service));
    if (!plan_.dashboard.empty()) files.push_back(DashboardObjects(plan_));
    if (!plan_.prepare.empty()) files.push_back({"prepare.yaml", {{PrepareJob(), {"prepare.enabled"}}}});
    return files;
  }

 private:
  const char* PortName(const ServicePlan& service) const { return service.spec->grpc() ? "grpc" : "tcp"; }

  ObjectFile OfService(const ServicePlan& service) const {
    ObjectFile file{service.spec->name + ".yaml", {}};
    std::vector<std::string> there;
    if (!service.spec->IsHosted()) there.push_back(service.value + ".enabled");
    const auto add = [&](Yaml object, std::vector<std::string> more = {}) {
      more.insert(more.begin(), there.begin(), there.end());
      file.objects.push_back({std::move(object), std::move(more)});
    };
    for (const InstancePlan& workload : service.workloads) {
      add(NetworkName(service, workload));
      add(Pods(service, workload));
      add(DisruptionBudget(service, workload), {"podDisruptionBudget.enabled"});
      if (service.spec->scales) add(Autoscaler(service, workload), {"autoscaling.enabled"});
    }
    add(Policy(service), {"networkPolicy.enabled"});
    if (service.spec->IsHosted()) add(Monitor(service), {"serviceMonitor.enabled"});
    return file;
  }

  // ----- a workload --------------------------------------------------------------------------------------------------

  Yaml NetworkName(const ServicePlan& service, const InstancePlan& workload) const {
    Yaml ports = Yaml::List({Yaml::Map(
        {{"name", PortName(service)}, {"port", service.port}, {"targetPort", PortName(service)}})});
    if (service.spec->IsHosted()) {
      ports.Push(Yaml::Map({{"name", "admin"}, {"port", kAdminPort}, {"targetPort", "admin"}}));
    }
    Yaml spec = Yaml::Map();
    if (service.spec->IsHosted()) spec.Add("clusterIP", "None");
    spec.Add("selector", Labels(service, workload)).Add("ports", std::move(ports));
    return Begin("v1", "Service", workload.name, Labels(service, workload)).Add("spec", std::move(spec));
  }

  Yaml Pods(const ServicePlan& service, const InstancePlan& workload) const {
    Yaml spec = Yaml::Map();
    if (service.spec->scales) {
      spec.Add(IfNot("autoscaling.enabled") + "replicas", Yaml::Plain(ValueOf(service.value + ".replicas")));
      // So long an old pod stays, for callers that have not heard of the new one.
      spec.Add("minReadySeconds", Yaml::Plain(ValueOf("minReadySeconds")));
      spec.Add("strategy",
               Yaml::Map({{"type", "RollingUpdate"},
                          {"rollingUpdate", Yaml::Map({{"maxSurge", 1}, {"maxUnavailable", 0}})}}));
    } else {
      spec.Add("replicas", 1);
      // Two of it must not serve at once.
      if (!service.keeps_data()) spec.Add("strategy", Yaml::Map({{"type", "Recreate"}}));
    }
    if (service.keeps_data()) spec.Add("serviceName", workload.name);
    spec.Add("selector", Selector(Labels(service, workload))).Add("template", Pod(service, workload));
    if (service.keeps_data()) spec.Add("volumeClaimTemplates", Yaml::List({DataClaim()}));
    return Begin("apps/v1", service.keeps_data() ? "StatefulSet" : "Deployment", workload.name,
                 Labels(service, workload))
        .Add("spec", std::move(spec));
  }

  Yaml DataClaim() const {
    Yaml spec = Yaml::Map({{"accessModes", Yaml::List({"ReadWriteOnce"})}});
    spec.Add(If("storage.className") + "storageClassName", ValueOf("storage.className"));
    spec.Add("resources", Yaml::Map({{"requests", Yaml::Map({{"storage", ValueOf("storage.size")}})}}));
    return Yaml::Map({{"metadata", Yaml::Map({{"name", "data"}})}, {"spec", std::move(spec)}});
  }

  Yaml Pod(const ServicePlan& service, const InstancePlan& workload) const {
    Yaml metadata = Yaml::Map({{"labels", WithReleaseLabels(Labels(service, workload))}});
    if (service.spec->IsHosted()) {
      metadata.Add("annotations", Yaml::Map({{"prometheus.io/scrape", "true"},
                                             {"prometheus.io/port", absl::StrCat(kAdminPort)},
                                             {"prometheus.io/path", "/metrics"}}));
    }
    Yaml spec = PodBase();
    spec.Add("terminationGracePeriodSeconds", plan_.GraceSeconds(service));
    spec.Add("topologySpreadConstraints", Spread(service, workload));
    spec.Add("containers", Yaml::List({ServiceContainer(service, workload)}));
    spec.Add("volumes", Volumes(service));
    return Yaml::Map({{"metadata", std::move(metadata)}, {"spec", std::move(spec)}});
  }

  // Pods of one instance stand in for each other, so they are what must lie apart. Those of a Deployment that is replaced
  // do not count.
  Yaml Spread(const ServicePlan& service, const InstancePlan& workload) const {
    Yaml spread = Yaml::List();
    for (const char* key : {"kubernetes.io/hostname", "topology.kubernetes.io/zone"}) {
      Yaml constraint = Yaml::Map({{"maxSkew", 1},
                                   {"topologyKey", key},
                                   {"whenUnsatisfiable", "ScheduleAnyway"},
                                   {"labelSelector", Selector(Labels(service, workload))}});
      if (!service.keeps_data()) constraint.Add("matchLabelKeys", Yaml::List({"pod-template-hash"}));
      spread.Push(std::move(constraint));
    }
    return spread;
  }

  Yaml ServiceContainer(const ServicePlan& service, const InstancePlan& workload) const {
    Yaml container = Container(service.spec->name, workload.command);
    Yaml ports = Yaml::List({Yaml::Map({{"name", PortName(service)}, {"containerPort", service.port}})});
    Yaml environment = LogEnvironment(service.spec->name);
    if (service.spec->IsHosted()) {
      const Yaml secret =
          Yaml::Map({{"name", ValueOf("admin.tokenSecret")}, {"key", "token"}, {"optional", true}});
      environment.Push(
          Yaml::Map({{"name", "CURTAIL_ADMIN_TOKEN"}, {"valueFrom", Yaml::Map({{"secretKeyRef", secret}})}}));
      ports.Push(Yaml::Map({{"name", "admin"}, {"containerPort", kAdminPort}}));
    }
    container.Add("env", std::move(environment));
    container.Add("ports", std::move(ports));
    AddProbes(service, &container);
    container.Add("resources", Resources(service.value + ".resources"));
    container.Add("securityContext", ContainerSecurity());
    container.Add("volumeMounts", Mounts(service));
    return container;
  }

  // One check with its times.
  void AddProbe(const ServicePlan& service, const char* key, const char* page, const Yaml& times,
                Yaml* container) const {
    const auto probe = [&times](std::string kind, Yaml check) {
      Yaml whole = times;
      return whole.Add(std::move(kind), std::move(check));
    };
    // Others may have no health service.
    if (!service.spec->IsHosted()) {
      container->Add(key, probe("tcpSocket", Yaml::Map({{"port", service.port}})));
      return;
    }
    const Yaml grpc = probe("grpc", Yaml::Map({{"port", service.port}}));
    if (!service.spec->entry) {
      container->Add(key, grpc);
      return;
    }
    // The kubelet's gRPC checks speak no TLS.
    container->Add(IfNot("tls.secret") + key, grpc);
    container->Add(If("tls.secret") + key,
                   probe("httpGet", Yaml::Map({{"path", page}, {"port", kAdminPort}})));
  }

  void AddProbes(const ServicePlan& service, Yaml* container) const {
    AddProbe(service, "startupProbe", "/readyz",
             Yaml::Map({{"periodSeconds", 1}, {"timeoutSeconds", 1}})
                 .Add("failureThreshold", Yaml::Plain(ValueOf("startupSeconds"))),
             container);
    AddProbe(service, "readinessProbe", "/readyz",
             Yaml::Map({{"periodSeconds", 2}, {"timeoutSeconds", 2}, {"failureThreshold", 3}}), container);
    // Patient, so that overload ends no pod.
    AddProbe(service, "livenessProbe", "/healthz",
             Yaml::Map({{"periodSeconds", 20}, {"timeoutSeconds", 10}, {"failureThreshold", 6}}), container);
  }

  Yaml Mounts(const ServicePlan& service) const {
    Yaml mounts = Yaml::List({Yaml::Map({{"name", "tmp"}, {"mountPath", "/tmp"}})});
    if (service.keeps_data()) mounts.Push(Yaml::Map({{"name", "data"}, {"mountPath", kDataFolder}}));
    if (!service.spec->secrets.empty()) {
      mounts.Push(SecretsMount());
    }
    if (ServesTls(service) || service.calls_entry) mounts.Push(TlsMount());
    return mounts;
  }

  static bool ServesTls(const ServicePlan& service) {
    return service.spec->entry && service.spec->IsHosted();
  }
  static Yaml SecretsMount() {
    return Yaml::Map({{"name", "secrets"}, {"mountPath", kSecretFolder}, {"readOnly", true}});
  }
  // Of flags by secret.
  Yaml SecretsVolume(const std::map<std::string, std::string>& secrets) const {
    Yaml sources = Yaml::List();
    for (const auto& [secret, flag] : secrets) {
      const Yaml item = Yaml::Map({{"key", secret}, {"path", secret}});
      sources.Push(Yaml::Map({{"secret", Yaml::Map({{"name", absl::StrCat(application_, "-", secret)},
                                                    {"items", Yaml::List({item})}})}}));
    }
    // 0440: for the pod's group, and none else.
    return Yaml::Map({{"name", "secrets"},
                      {"projected", Yaml::Map({{"defaultMode", 0440}, {"sources", std::move(sources)}})}});
  }
  Yaml TlsMount() const {
    return Yaml::Map({{If("tls.secret") + "name", "tls"}, {"mountPath", kTlsFolder}, {"readOnly", true}});
  }
  // Callers of the entry get the authority's certificate and not the key.
  Yaml TlsVolume(bool with_key) const {
    Yaml secret = Yaml::Map({{"secretName", ValueOf("tls.secret")}, {"defaultMode", 0440}});
    if (!with_key) secret.Add("items", Yaml::List({Yaml::Map({{"key", "ca.crt"}, {"path", "ca.crt"}})}));
    return Yaml::Map({{If("tls.secret") + "name", "tls"}, {"secret", std::move(secret)}});
  }

  Yaml Volumes(const ServicePlan& service) const {
    Yaml volumes = Yaml::List({Yaml::Map({{"name", "tmp"}, {"emptyDir", Yaml::Map()}})});
    if (!service.spec->secrets.empty()) volumes.Push(SecretsVolume(service.spec->secrets));
    if (ServesTls(service) || service.calls_entry) volumes.Push(TlsVolume(ServesTls(service)));
    return volumes;
  }

  Yaml DisruptionBudget(const ServicePlan& service, const InstancePlan& workload) const {
    return Begin("policy/v1", "PodDisruptionBudget", workload.name, Labels(service, workload))
        .Add("spec", Yaml::Map({{"maxUnavailable", 1}, {"selector", Selector(Labels(service, workload))}}));
  }

  Yaml Autoscaler(const ServicePlan& service, const InstancePlan& workload) const {
    // Of an adapter, in thousandths of a second.
    const auto by_pods = [](const char* value, const char* metric) {
      return Yaml::Map(
          {{If(value) + "type", "Pods"},
           {"pods", Yaml::Map({{"metric", Yaml::Map({{"name", metric}})},
                               {"target", Yaml::Map({{"type", "AverageValue"},
                                                     {"averageValue", ValueOf(value) + "m"}})}})}});
    };
    const Yaml cpu = Yaml::Map(
        {{"type", "Resource"},
         {"resource",
          Yaml::Map({{"name", "cpu"},
                     {"target", Yaml::Map({{"type", "AverageValue"},
                                           {"averageValue", ValueOf(service.value + ".cpuTarget")}})}})}});
    Yaml target = Yaml::Map({{"apiVersion", "apps/v1"}, {"kind", "Deployment"}, {"name", workload.name}});
    Yaml spec = Yaml::Map({{"scaleTargetRef", std::move(target)}});
    spec.Add("minReplicas", Yaml::Plain(ValueOf(service.value + ".replicas")));
    spec.Add("maxReplicas", Yaml::Plain(ValueOf(service.value + ".maxReplicas")));
    Yaml metrics = Yaml::List({cpu});
    // Pods of other programs have no such metrics, and with one that is missing the cluster never scales down.
    if (service.spec->IsHosted()) {
      metrics.Push(by_pods("autoscaling.queueWaitMs", "curtail_queue_wait_mean_seconds"));
      metrics.Push(by_pods("autoscaling.p99Ms", "rpc_server_duration_p99_seconds"));
    }
    spec.Add("metrics", std::move(metrics));
    return Begin("autoscaling/v2", "HorizontalPodAutoscaler", workload.name, Labels(service, workload))
        .Add("spec", std::move(spec));
  }

  // ----- a service ---------------------------------------------------------------------------------------------------

  Yaml PodsOf(const std::string& service) const {
    return Yaml::Map({{"podSelector", Selector(ServiceLabels(service))}});
  }
  // True if the outside calls it: the entry, what speaks HTTP, and what no other service is there for.
  static bool IsOpen(const ServicePlan& service) {
    return service.spec->entry || service.spec->protocol == "http" || service.callers.empty();
  }

  // Its callers may reach it, and it those that it calls. Metrics may be read by every pod of the cluster.
  Yaml Policy(const ServicePlan& service) const {
    Yaml ingress = Yaml::List();
    Yaml callers = Yaml::List();
    for (const std::string& caller : service.callers) callers.Push(PodsOf(caller));
    if (IsOpen(service)) {
      ingress.Push(Yaml::Map({{"ports", Yaml::List({Port(service.port)})}}));
    } else {
      ingress.Push(Yaml::Map({{"from", std::move(callers)}, {"ports", Yaml::List({Port(service.port)})}}));
    }
    if (service.spec->IsHosted()) {
      const Yaml all = Yaml::List({Yaml::Map({{"namespaceSelector", Yaml::Map()}})});
      ingress.Push(Yaml::Map({{"from", all}, {"ports", Yaml::List({Port(kAdminPort)})}}));
    }
    Yaml egress = Yaml::List();
    if (service.spec->IsHosted() || !service.spec->calls.empty()) {
      egress.Push(Yaml::Map({{"ports", Yaml::List({Port(kDnsPort, "UDP"), Port(kDnsPort)})}}));
    }
    for (const std::string& name : service.callees) {
      const ServicePlan& callee = *plan_.Find(name);
      egress.Push(
          Yaml::Map({{"to", Yaml::List({PodsOf(name)})}, {"ports", Yaml::List({Port(callee.port)})}}));
      if (!callee.spec->IsHosted()) {
        egress.Push(Yaml::Map(
            {{IfNot(callee.value + ".enabled") + "ports", Yaml::List({Yaml::Map({{"protocol", "TCP"}})})}}));
      }
    }
    bool outside = false;
    for (const deploy::Wiring& call : service.spec->calls)
      outside = outside || plan_.Find(call.service) == nullptr;
    if (outside) egress.Push(Yaml::Map({{"ports", Yaml::List({Yaml::Map({{"protocol", "TCP"}})})}}));
    if (service.spec->IsHosted()) {
      egress.Push(Yaml::Map(
          {{If("tracing.to") + "ports",
            Yaml::List(
                {Yaml::Map({{"protocol", "TCP"}}).Add("port", Yaml::Plain(PortOfUrl("tracing.to")))})}}));
    }
    Yaml spec = Yaml::Map({{"podSelector", Selector(ServiceLabels(service.spec->name))},
                           {"policyTypes", Yaml::List({"Ingress", "Egress"})},
                           {"ingress", std::move(ingress)},
                           {"egress", std::move(egress)}});
    return Begin("networking.k8s.io/v1", "NetworkPolicy", service.name, ServiceLabels(service.spec->name))
        .Add("spec", std::move(spec));
  }

  Yaml Monitor(const ServicePlan& service) const {
    const Yaml endpoint = Yaml::Map({{"port", "admin"}, {"path", "/metrics"}});
    Yaml monitor =
        Begin("monitoring.coreos.com/v1", "ServiceMonitor", service.name, ServiceLabels(service.spec->name));
    const std::string own = "serviceMonitor.labels";
    monitor.Find("metadata")->Find("labels")->Add(If(own) + BlockOf(own), "");
    return monitor.Add("spec", Yaml::Map({{"selector", Selector(ServiceLabels(service.spec->name))},
                                          {"endpoints", Yaml::List({endpoint})}}));
  }

  // ----- jobs --------------------------------------------------------------------------------------------------------

  // A container that ends by itself, with the folders that it may write to.
  Yaml JobContainer(const std::string& name, const std::vector<std::string>& command, bool secrets) const {
    Yaml mounts = Yaml::List();
    for (const auto& [volume, path] : {std::pair("tmp", "/tmp"), {"data", kDataFolder}}) {
      mounts.Push(Yaml::Map({{"name", volume}, {"mountPath", path}}));
    }
    if (secrets) mounts.Push(SecretsMount());
    mounts.Push(TlsMount());
    return Container(name, command)
        .Add("securityContext", ContainerSecurity())
        .Add("volumeMounts", std::move(mounts));
  }

  Yaml JobPod(const std::string& component, const std::map<std::string, std::string>& secrets,
              Yaml pod) const {
    Yaml volumes = Yaml::List();
    for (const char* volume : {"tmp", "data"}) {
      volumes.Push(Yaml::Map({{"name", volume}, {"emptyDir", Yaml::Map()}}));
    }
    if (!secrets.empty()) volumes.Push(SecretsVolume(secrets));
    volumes.Push(TlsVolume(/*with_key=*/false));
    pod.Add("volumes", std::move(volumes));
    return Yaml::Map({{"metadata", Yaml::Map({{"labels", WithReleaseLabels(ServiceLabels(component))}})},
                      {"spec", std::move(pod)}});
  }

  Yaml PrepareContainer() const {
    return JobContainer("prepare", plan_.prepare, !plan_.topology.prepare_secrets.empty())
        .Add("env", LogEnvironment("prepare"))
        .Add("resources", Resources("prepare.resources"));
  }

  Yaml PrepareJob() const {
    Yaml pod = PodBase();
    pod.Add("restartPolicy", "OnFailure");
    pod.Add("containers", Yaml::List({PrepareContainer()}));
    Yaml job = Begin("batch/v1", "Job", application_ + "-prepare", ServiceLabels("prepare"));
    // It fails until the application serves.
    Yaml spec = Yaml::Map({{"backoffLimit", 30}});
    spec.Add("template", JobPod("prepare", plan_.topology.prepare_secrets, std::move(pod)));
    job.Find("metadata")->Add("annotations", Yaml::Map({{"helm.sh/hook", "post-install"}}));
    return job.Add("spec", std::move(spec));
  }

  const Plan& plan_;
  const std::string application_;
};

}  // namespace

std::vector<ObjectFile> KubernetesObjects(const Plan& plan) { return Objects(plan).All(); }

Yaml LoadJob(const Plan& plan, const std::vector<std::string>& command) {
  return Objects(plan).LoadJob(command);
}

}  // namespace curtail::tool
