# SPDX-License-Identifier: Apache-2.0
"""A Kubernetes cluster of one node, in namespaces of its own, without a registry.

Isolated() starts a program in a network, a process and a mount namespace. When that ends, the kernel ends all processes in
them, and networks, firewall rules and mounts go with them. Left are cgroups and the kernel settings that a kubelet changes, which
Isolated() removes and puts back. Cluster runs in there: etcd, the programs of Kubernetes, containerd, CoreDNS. No packet leaves the
machine: the network has no other end.
"""
import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
SOURCES = HERE.parent.parent
sys.path.insert(0, str(SOURCES / "deploy"))
import image_tar  # noqa: E402

MAX_WAIT_S = 180
VERSION = "1.34.4"
NODE = "node"
# Networks for documentation, which are nobody's.
ADDRESS, PODS, SERVICES = "192.0.2.1", "198.51.100.0/24", "203.0.113.0/24"
API = f"https://{ADDRESS}:6443"
DOMAIN = "cluster.local"
CGROUP = "curtail-kubernetes"
CGROUPS = pathlib.Path("/sys/fs/cgroup")
# Those that a kubelet sets, for the whole machine.
SETTINGS = [pathlib.Path("/proc/sys") / name for name in (
    "vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops", "kernel/keys/root_maxkeys",
    "kernel/keys/root_maxbytes")]
PACKAGES = {"etcd": "etcd-server", "containerd": "containerd", "ctr": "containerd", "runc": "runc", "iptables": "iptables",
            "conntrack": "conntrack", "unshare": "util-linux", "ip": "iproute2", "cc": "gcc"}
PLUGINS = pathlib.Path("/usr/lib/cni")  # Debian's containernetworking-plugins
PROGRAMS = {"hyperkube": "./hyperkube", "coredns": "./coredns", "helm": "helm.sh/helm/v3/cmd/helm",
            "kubectl": "k8s.io/kubernetes/cmd/kubectl"}


def missing():
    """What has to be installed before a cluster can start, as the words of a command."""
    packages = {package for program, package in PACKAGES.items() if shutil.which(program) is None}
    if not (PLUGINS / "ptp").exists():
        packages.add("containernetworking-plugins")
    return sorted(packages)


def build_programs(folder):
    """Builds what of Kubernetes is not there yet, of the versions in programs/go.mod: some 20 minutes on two CPUs."""
    folder.mkdir(parents=True, exist_ok=True)
    go = shutil.which("go", path=f"{os.environ.get('PATH', '')}:/usr/local/go/bin")
    stamp = f"-X k8s.io/component-base/version.gitVersion=v{VERSION}"
    for name, package in PROGRAMS.items():
        if (folder / name).exists():
            continue
        if go is None:
            sys.exit("go is missing: it builds Kubernetes (https://go.dev/dl, 1.25 or later)")
        print(f"building {name}", flush=True)
        subprocess.run(["nice", "-n", "10", go, "build", "-mod=readonly", "-trimpath", "-p", os.environ.get("GO_JOBS", "1"),
                        "-ldflags", f"-s -w {stamp}", "-o", folder / name, package], check=True, cwd=HERE / "programs",
                       env={**os.environ, "CGO_ENABLED": "0", "GOFLAGS": ""})


def wait_until(what, holds, seconds=MAX_WAIT_S):
    """The first true result of holds(). Ends the program if there is none in time."""
    until = time.monotonic() + seconds
    while True:
        result = holds()
        if result:
            return result
        if time.monotonic() > until:
            raise TimeoutError(f"waited {seconds} s: {what}")
        time.sleep(0.5)  # a look by kubectl is dear


def output_of(*command, check=True, text=None, env=None, timeout=MAX_WAIT_S):
    done = subprocess.run([str(word) for word in command], input=text, text=True, capture_output=True, timeout=timeout, env=env,
                          check=False)
    if check and done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, command))}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done


# ----- namespaces -----------------------------------------------------------------------------------------------------------


def cgroup_roots():
    return [root / CGROUP for root in ([CGROUPS] if (CGROUPS / "cgroup.controllers").exists() else sorted(CGROUPS.iterdir()))
            if root.is_dir() and not root.is_symlink()]


def remove_cgroups():
    def gone():
        for root in cgroup_roots():
            for folder, _, _ in sorted(os.walk(root), reverse=True):
                with contextlib.suppress(OSError):  # its processes are about to end
                    os.rmdir(folder)
        return not any(root.exists() for root in cgroup_roots())
    wait_until("cgroups cannot be removed", gone, 30)


def isolated(*command):
    """Runs a command in namespaces of its own. Returns its exit status."""
    remove_cgroups()
    kept = {path: path.read_text() for path in SETTINGS}
    for root in cgroup_roots():
        root.mkdir()
        for name in ("cpuset.cpus", "cpuset.mems"):  # a new cpuset of cgroup v1 has none
            if (root / name).exists():
                (root / name).write_text((root.parent / name).read_text())
    # The first process of the namespace ends with unshare, and all others with it.
    inside = subprocess.Popen(["unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc", "--", *command])
    try:
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, lambda *_: sys.exit(143))
        return inside.wait()
    finally:
        inside.kill()
        inside.wait()
        remove_cgroups()
        for path, text in kept.items():
            path.write_text(text)


def become_init():
    """The first process of a namespace gets every orphan: it waits for them all. Returns in the child that does the work."""
    child = os.fork()
    if child == 0:
        return
    while True:
        ended, status = os.wait()
        if ended == child:
            os._exit(os.waitstatus_to_exitcode(status) & 255)


# ----- the cluster ----------------------------------------------------------------------------------------------------------


class Cluster:
    """One node. Its files are in `folder`, programs in `programs`."""

    def __init__(self, folder, programs):
        self.folder, self.programs = folder, programs
        self.processes = []
        self.config = folder / "admin.json"
        self.env = {**os.environ, "KUBECONFIG": str(self.config), "PATH": f"{programs}:{os.environ['PATH']}",
                    "HOME": str(folder)}

    def start(self):
        for name in ("logs", "containerd", "kubelet", "cni", "volumes"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        self._make_network()
        self._write_files()
        self._start_control_plane()
        self._start_node()
        wait_until("the node is not ready", self._ready)

    def kubectl(self, *words, text=None, check=True, timeout=MAX_WAIT_S):
        return output_of(self.programs / "kubectl", *words, text=text, check=check, env=self.env, timeout=timeout)

    def get(self, *words):
        return json.loads(self.kubectl("get", *words, "--output", "json").stdout)

    def helm(self, *words, timeout=MAX_WAIT_S):
        return output_of(self.programs / "helm", *words, env=self.env, timeout=timeout).stdout

    def load_image(self, file):
        output_of("ctr", "--namespace", "k8s.io", "images", "import", file)

    def add_volumes(self, count, size="1Gi"):
        """Volumes for as many claims; nothing here makes them when they are claimed."""
        volumes = []
        for number in range(count):
            path = self.folder / "volumes" / str(number)
            path.mkdir(exist_ok=True)
            node = {"key": "kubernetes.io/hostname", "operator": "In", "values": [NODE]}
            volumes.append({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": f"volume-{number}"},
                            "spec": {"capacity": {"storage": size}, "accessModes": ["ReadWriteOnce"],
                                     "local": {"path": str(path)}, "nodeAffinity": {
                                         "required": {"nodeSelectorTerms": [{"matchExpressions": [node]}]}}}})
        self.kubectl("apply", "-f", "-", text=json.dumps({"apiVersion": "v1", "kind": "List", "items": volumes}))

    def kill_kubelet(self):
        """Without a goodbye: pods go on, and none is started, ended or watched until restart_kubelet()."""
        entry = next(entry for entry in self.processes if entry[0] == "kubelet")
        self.processes.remove(entry)
        entry[1].kill()
        entry[1].wait()

    def restart_kubelet(self):
        """Returns when the API server has heard from it and has the node as ready."""
        def renewed():
            return self.get("lease", NODE, "--namespace", "kube-node-lease")["spec"]["renewTime"]
        before = renewed()
        self._run_kubelet()
        wait_until("the kubelet does not come back", lambda: renewed() != before and self._ready())

    # ----- its parts --------------------------------------------------------------------------------------------------------

    def _run(self, name, *command):
        with open(self.folder / "logs" / f"{name}.log", "wb") as log:
            process = subprocess.Popen([str(word) for word in command], stdout=log, stderr=log, stdin=subprocess.DEVNULL,
                                       env=self.env)
        self.processes.append((name, process))

    def _run_kubelet(self):
        self._run("kubelet", self.programs / "hyperkube", "kubelet", f"--config={self.folder}/kubelet.json",
                  f"--kubeconfig={self.config}", f"--hostname-override={NODE}", f"--node-ip={ADDRESS}",
                  f"--root-dir={self.folder}/kubelet")

    def _wait(self, what, *command, seconds=MAX_WAIT_S):
        def holds():
            for name, process in self.processes:
                if process.poll() is not None:
                    raise RuntimeError(f"{name} ended with {process.returncode}: see {self.folder}/logs/{name}.log")
            return output_of(*command, check=False, env=self.env).returncode == 0
        wait_until(what, holds, seconds)

    def _ready(self):
        nodes = self.get("nodes")["items"]
        return nodes and any(c["type"] == "Ready" and c["status"] == "True" for c in nodes[0]["status"].get("conditions", []))

    def _make_network(self):
        for words in ("link set lo up", "link add node0 type veth peer name node1", f"address add {ADDRESS}/24 dev node0",
                      "link set node0 up", "link set node1 up", "route add default dev node0"):
            output_of("ip", *words.split())
        # A folder for sockets and states that ends with the namespace; and names are the cluster's.
        output_of("mount", "-t", "tmpfs", "tmpfs", "/run")
        names = self.folder / "resolv.conf"
        names.write_text(f"nameserver {ADDRESS}\n")
        output_of("mount", "--bind", names, os.path.realpath("/etc/resolv.conf"))
        pathlib.Path("/proc/sys/net/ipv4/ip_forward").write_text("1")

    def _write_files(self):
        folder = self.folder
        (folder / "tokens.csv").write_text("admin-of-a-test,admin,admin,system:masters\n")
        output_of("openssl", "genrsa", "-out", folder / "accounts.key", "2048")
        self.config.write_text(json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "it",
            "clusters": [{"name": "it", "cluster": {"server": API,
                                                     "certificate-authority": str(folder / "certificates/apiserver.crt")}}],
            "users": [{"name": "it", "user": {"token": "admin-of-a-test"}}],
            "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}]}))
        (folder / "kubelet.json").write_text(json.dumps({
            "apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
            "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
            "authorization": {"mode": "AlwaysAllow"}, "cgroupDriver": "cgroupfs", "cgroupRoot": f"/{CGROUP}",
            "clusterDNS": [ADDRESS], "clusterDomain": DOMAIN, "podLogsDir": str(folder / "pods"),
            "containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock",
            "failCgroupV1": False, "failSwapOn": False, "oomScoreAdj": 0, "maxOpenFiles": 19000,
            "evictionHard": {"memory.available": "100Mi"}, "imageGCHighThresholdPercent": 100,
            "nodeStatusUpdateFrequency": "10s"}))
        (folder / "cni/pods.conflist").write_text(json.dumps({
            "cniVersion": "0.4.0", "name": "pods", "plugins": [{
                "type": "ptp", "ipam": {"type": "host-local", "dataDir": "/run/cni", "ranges": [[{"subnet": PODS}]],
                                        "routes": [{"dst": "0.0.0.0/0"}]}}]}))
        (folder / "containerd.toml").write_text(f"""version = 2
root = "{folder}/containerd"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "localhost/pause:1"
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{PLUGINS}"
    conf_dir = "{folder}/cni"
""")
        (folder / "Corefile").write_text(f""".:53 {{
    errors
    ready {ADDRESS}:8181
    kubernetes {DOMAIN} in-addr.arpa {{
        kubeconfig {self.config}
        ttl 5
    }}
}}
""")

    def _start_control_plane(self):
        folder, hyperkube = self.folder, self.programs / "hyperkube"
        key = folder / "accounts.key"
        self._run("etcd", "etcd", "--data-dir", "/run/etcd")
        self._run("kube-apiserver", hyperkube, "kube-apiserver", "--etcd-servers=http://127.0.0.1:2379", "--secure-port=6443",
                  f"--bind-address={ADDRESS}", f"--advertise-address={ADDRESS}", f"--cert-dir={folder}/certificates",
                  f"--service-account-key-file={key}", f"--service-account-signing-key-file={key}",
                  f"--service-account-issuer=https://kubernetes.default.svc.{DOMAIN}",
                  f"--service-cluster-ip-range={SERVICES}", f"--token-auth-file={folder}/tokens.csv",
                  "--authorization-mode=Node,RBAC", "--allow-privileged", "--endpoint-reconciler-type=none",
                  "--kubelet-preferred-address-types=InternalIP")
        self._wait("the API server is not ready", self.programs / "kubectl", "get", "--raw=/readyz")
        self._run("kube-controller-manager", hyperkube, "kube-controller-manager", f"--kubeconfig={self.config}",
                  "--leader-elect=false", f"--service-account-private-key-file={key}",
                  f"--root-ca-file={folder}/certificates/apiserver.crt", "--node-monitor-grace-period=5m")
        self._run("kube-scheduler", hyperkube, "kube-scheduler", f"--kubeconfig={self.config}", "--leader-elect=false")
        self._run("coredns", self.programs / "coredns", "-conf", folder / "Corefile")

    def _start_node(self):
        folder, hyperkube = self.folder, self.programs / "hyperkube"
        self._run("containerd", "containerd", "--config", folder / "containerd.toml")
        self._wait("containerd is not ready", "ctr", "version")
        pause = folder / "pause"
        pause.mkdir(exist_ok=True)
        output_of("cc", "-static", "-O1", "-o", pause / "pause", HERE / "programs/pause.c")
        image_tar.write(pause, "localhost/pause:1", folder / "pause.tar", {"Entrypoint": ["/pause"]})
        self.load_image(folder / "pause.tar")
        self._run_kubelet()
        self._run("kube-proxy", hyperkube, "kube-proxy", f"--kubeconfig={self.config}", f"--hostname-override={NODE}",
                  "--proxy-mode=iptables", "--oom-score-adj=0", "--conntrack-max-per-core=0", "--conntrack-min=0",
                  "--conntrack-tcp-timeout-established=0s", "--conntrack-tcp-timeout-close-wait=0s")
