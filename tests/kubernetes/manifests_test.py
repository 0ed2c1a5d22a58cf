#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `curtail render` writes for every shipped application, before judges that are not ours.

usage: manifests_test.py schemas|helm CURTAIL APPS_FOLDER SCRATCH_FOLDER

schemas: every object is as the API schemas of Kubernetes say, those of the Python package kubernetes-validate, which is
         installed into SCRATCH_FOLDER if it is not there. The test is skipped (77) where it cannot be had.
helm:    the chart, rendered by helm, has the objects of the plain manifests, and `helm lint` finds no fault in it. Helm is
         that of $PATH, or the one that tests/kubernetes/run has built. Skipped without.
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import venv

import yaml

MAX_WAIT_S = 120
SKIPPED = 77
VERSION = "1.34"  # of Kubernetes
PROGRAMS = pathlib.Path(__file__).resolve().parents[2] / "build/kubernetes/bin"


def run(*command):
    return subprocess.run(command, text=True, capture_output=True, timeout=MAX_WAIT_S)


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(SKIPPED)


def objects_of(text):
    objects = [o for o in yaml.safe_load_all(text) if o]
    return {(o["kind"], o["metadata"]["name"]): o for o in objects}


def render(curtail, app, *flags):
    done = run(curtail, "render", app, *flags)
    assert done.returncode == 0, done.stderr
    return done.stdout


def validator(scratch):
    """A Python that has kubernetes_validate."""
    for python in (sys.executable, str(scratch / "venv/bin/python")):
        if pathlib.Path(python).exists() and run(python, "-c", "import kubernetes_validate").returncode == 0:
            return python
    try:
        venv.create(scratch / "venv", with_pip=True)
    except (subprocess.CalledProcessError, OSError) as error:
        skip(f"no virtual environment: {error}")
    python = str(scratch / "venv/bin/python")
    done = run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "kubernetes-validate")
    return python if done.returncode == 0 else skip(f"kubernetes-validate cannot be installed: {done.stderr[-300:]}")


# Each object of the input, which is JSON; then objects that are wrong on purpose.
JUDGE = """
import copy, json, sys
import kubernetes_validate as judge
version = sys.argv[1]
objects = json.load(sys.stdin)
for o in objects:
    judge.validate(o, version, strict=True)
def refuses(change, kind):
    o = copy.deepcopy(next((o for o in objects if o["kind"] == kind), None))
    if o is None:  # nothing of it scales
        return
    change(o)
    try:
        judge.validate(o, version, strict=True)
    except judge.ValidationError:
        return
    sys.exit("the schemas accept a wrong " + kind)
refuses(lambda o: o["spec"].update(replica=1), "Deployment")
refuses(lambda o: o["spec"].pop("maxReplicas"), "HorizontalPodAutoscaler")
print(len(objects), "objects are as the schemas say")
"""


def check_schemas(curtail, apps, scratch):
    python = validator(scratch)
    for app in apps:
        # Objects of a custom resource have no schema there; they are not in the plain manifests.
        objects = list(objects_of(render(curtail, app, "--to", "kubernetes")).values())
        load = run(curtail, "load", app, "--kubernetes", "--rps", "100", "--dry-run")
        assert load.returncode == 0, load.stderr
        objects.append(yaml.safe_load(load.stdout))
        done = subprocess.run([python, "-c", JUDGE, VERSION], input=json.dumps(objects), text=True, capture_output=True,
                              timeout=MAX_WAIT_S)
        assert done.returncode == 0, f"{app}: {done.stderr[-3000:]}"
        print(f"{app}: {done.stdout.strip()}")


def check_helm(curtail, apps, scratch):
    helm = shutil.which("helm", path=f"{os.environ.get('PATH', os.defpath)}:{PROGRAMS}") or skip("helm is not installed")
    for app in apps:
        chart = scratch / f"chart-{app}"
        shutil.rmtree(chart, ignore_errors=True)
        render(curtail, app, "--to", "helm", "--output", str(chart))
        lint = run(helm, "lint", "--strict", str(chart))
        assert lint.returncode == 0, lint.stdout + lint.stderr
        template = (helm, "template", "--kube-version", VERSION, app)  # a helm that Go installed takes an old one
        done = run(*template, str(chart), "--api-versions", "monitoring.coreos.com/v1")
        assert done.returncode == 0, done.stderr
        plain = objects_of(render(curtail, app, "--to", "kubernetes"))
        # The labels name the tool that manages an object, which differs.
        assert objects_of(done.stdout.replace("managed-by: \"Helm\"", "managed-by: \"curtail\"")) == plain, \
            f"{app}: the chart has other objects than the manifests"
        # The other way of every switch.
        entry = yaml.safe_load((chart / "values.yaml").read_text())
        values = {"autoscaling.enabled": "false", "podDisruptionBudget.enabled": "false", "networkPolicy.enabled": "false",
                  "serviceMonitor.enabled": "true", "tls.secret": "certificate", "fence": "strict",
                  "tracing.to": "otlp=http://collector:4318", "serviceMonitor.labels.release": "prometheus",
                  "imagePullSecrets[0].name": "registry"}
        if "storage" in entry:
            values["storage.className"] = "fast"
        sets = [word for key, value in values.items() for word in ("--set", f"{key}={value}")]
        done = run(*template, str(chart), *sets)
        assert done.returncode == 0, done.stderr
        objects = objects_of(done.stdout)
        kinds = {kind for kind, _ in objects}
        assert "ServiceMonitor" in kinds and not kinds & {"HorizontalPodAutoscaler", "NetworkPolicy"}, kinds
        assert "--fence=strict" in done.stdout and "--tls-cert=/run/secrets/tls/tls.crt" in done.stdout
        assert "prepare" not in entry or "--ca-file=/run/secrets/tls/ca.crt" in done.stdout
        for (kind, name), o in objects.items():
            pod = o["spec"].get("template", {}).get("spec")
            assert pod is None or pod["imagePullSecrets"] == [{"name": "registry"}], name
            assert kind != "ServiceMonitor" or o["metadata"]["labels"]["release"] == "prometheus", name
        for to, port in (("otlp=http://collector:9999/v1/traces", 9999), ("zipkin=http://[fd00::12]", 80)):
            done = run(*template, str(chart), "--set", f"tracing.to={to}")
            policies = [o for (kind, _), o in objects_of(done.stdout).items() if kind == "NetworkPolicy"]
            assert any({"ports": [{"protocol": "TCP", "port": port}]} in o["spec"]["egress"] for o in policies), (to, policies)
        print(f"{app}: {len(plain)} objects")


def main(case, curtail, apps_folder, scratch):
    scratch = pathlib.Path(scratch)
    scratch.mkdir(parents=True, exist_ok=True)
    apps = sorted(path.parent.name for path in pathlib.Path(apps_folder).glob("*/topology.yaml"))
    assert len(apps) > 1, apps_folder
    {"schemas": check_schemas, "helm": check_helm}[case](curtail, apps, scratch)


if __name__ == "__main__":
    main(*sys.argv[1:])
