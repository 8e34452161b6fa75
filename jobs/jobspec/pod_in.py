"""A Kubernetes pod spec -> fields of a JobSpec. Single values are checked later, by `checks.parse`."""

from collections.abc import Mapping

from clusters import quantities
from jobs.jobspec import checks, syntax
from jobs.jobspec.parts import PAGE_SIZES
from jobs.jobspec.reader import Reader
from jobs.jobspec.rules import HUGE_PAGES_PATH, SHARED_MEMORY_PATH

Document = dict[str, object]

GPU_RESOURCE = "nvidia.com/gpu"
PRODUCT_LABEL = "nvidia.com/gpu.product"
HUGE_PAGES = {f"hugepages-{size}": size for size in PAGE_SIZES}
# Kubernetes' defaults for a probe that does not say.
PROBE_DELAY_S = 0
PROBE_PERIOD_S = 10


def read_pod_spec(reader: Reader, restart: tuple[str, ...], *, is_alone: bool = False) -> Document:
    """Container, volumes and scheduling wishes of a pod. `restart` are the restart policies that can be kept.

    Only services (and pods that stand alone) may leave the policy out: its default is "Always".
    """
    policy = reader.choice("restartPolicy", restart)
    if policy is None and not reader.has("restartPolicy") and "Always" not in restart and not is_alone:
        reader.refuse("restartPolicy", "required")
    _accept_only(reader, "automountServiceAccountToken", allowed=False)
    _accept_only(reader, "enableServiceLinks", allowed=False)
    volumes = dict(reader.parts("volumes", _read_volume, most=checks.LISTED_MAX))
    containers = reader.parts("containers", lambda item: _read_container(item, volumes), most=1)
    if reader.value("containers") in (None, []):
        reader.refuse("containers", "required")
    for name in volumes if containers else ():
        reader.refuse(f"volumes.{name}", "volume_not_mounted")
    return {
        **(containers[0] if containers else {}),
        "tolerations": list(reader.parts("tolerations", _read_toleration, most=checks.LISTED_MAX)),
        "accelerators": _read_products(reader),
        "priority": reader.value("priorityClassName"),
        "image_pull_secret": next(iter(reader.parts("imagePullSecrets", _read_name, most=1)), None),
        "runtime_class": reader.value("runtimeClassName"),
    }


def _accept_only(reader: Reader, key: str, *, allowed: bool) -> None:
    value = reader.flag(key)
    if value is not None and value is not allowed:
        reader.refuse(key, "cannot_carry")


def _read_name(reader: Reader) -> object:
    return reader.value("name")


def _read_products(reader: Reader) -> list[object]:
    """GPU models by label: nodeSelector, or the one node affinity term that asks for some of them."""
    chosen: list[object] = []
    chosen += reader.part("nodeSelector", lambda item: [item.value(PRODUCT_LABEL)]) or []
    chosen += reader.part("affinity", _read_affinity) or []
    return [product for product in chosen if product is not None]


def _read_affinity(reader: Reader) -> list[object]:
    return reader.part("nodeAffinity", _read_node_affinity) or []


def _read_node_affinity(reader: Reader) -> list[object]:
    return reader.part("requiredDuringSchedulingIgnoredDuringExecution", _read_required) or []


def _read_required(reader: Reader) -> list[object]:
    terms = reader.parts("nodeSelectorTerms", _read_term, most=1)
    return terms[0] if terms else []


def _read_term(reader: Reader) -> list[object]:
    expressions = reader.parts("matchExpressions", _read_expression, most=1)
    return expressions[0] if expressions else []


def _read_expression(reader: Reader) -> list[object]:
    reader.choice("key", (PRODUCT_LABEL,))
    reader.choice("operator", ("In",))
    return list(reader.names("values", syntax.FLAVOR, most=checks.LISTED_MAX))


def _read_container(reader: Reader, volumes: dict[str, Document]) -> Document:
    reader.value("name")  # ours is called "main", so that logs and probes find it
    document: Document = {name: reader.value(name) for name in ("image", "command", "args")}
    document |= _read_variables(reader)
    ports = reader.parts("ports", _read_port, most=1)
    document |= {"port": ports[0]} if ports else {}
    document |= reader.part("resources", _read_resources) or {}
    if not reader.has("resources"):
        reader.refuse("resources", "required")
    document |= {
        name: reader.part(key, _read_probe)
        for name, key in (("readiness", "readinessProbe"), ("liveness", "livenessProbe"))
        if reader.has(key)
    }
    return _with_mounts(reader, document, volumes)


def _read_port(reader: Reader) -> object:
    reader.choice("protocol", ("TCP",))
    return reader.value("containerPort")


def _read_variables(reader: Reader) -> Document:
    env: Document = {}
    secrets: list[object] = []
    variables = reader.parts("env", _read_variable, most=checks.ENV_MAX)
    for index, (name, value, secret) in enumerate(variables):
        if secret is not None:
            secrets.append({**secret, "env": name})
        elif name in env:
            reader.refuse(f"env[{index}].name", "duplicate", value=name)
        else:
            env[name] = value
    return {"env": env, "secrets": secrets}


def _read_variable(reader: Reader) -> tuple[str, object, Document | None]:
    name = reader.require("name", reader.text("name", syntax.ENV_NAME), instead="")
    value = reader.value("value")
    secret = reader.part("valueFrom", lambda item: item.part("secretKeyRef", _read_secret_key))
    if reader.has("valueFrom") and secret is None:
        reader.refuse("valueFrom", "cannot_carry")
    return name, "" if value is None else value, secret


def _read_secret_key(reader: Reader) -> Document:
    return {"name": reader.value("name"), "key": reader.value("key")}


def _read_resources(reader: Reader) -> Document:
    limits = reader.part("limits", _read_amounts) or {}
    requests = reader.part("requests", _read_amounts) or {}
    gpus = limits.get(GPU_RESOURCE)
    if gpus is None:
        reader.refuse(f"limits.{GPU_RESOURCE}", "required")
    elif requests.get(GPU_RESOURCE, gpus) != gpus:
        numbers = {"request": requests[GPU_RESOURCE], "limit": gpus}
        reader.refuse(f"requests.{GPU_RESOURCE}", "gpu_request_limit_differ", **numbers)
    document: Document = {"gpus_per_worker": None if gpus is None else _count(gpus)}
    for name in ("cpu", "memory"):
        amount = {"request": requests.get(name), "limit": limits.get(name)}
        document |= {name: amount} if any(amount.values()) else {}
    return document | _read_huge_pages(reader, limits, requests)


def _read_huge_pages(reader: Reader, limits: dict[str, str], requests: dict[str, str]) -> Document:
    """Pages of one size, as much asked for as allowed."""
    names = [name for name in HUGE_PAGES if name in limits or name in requests]
    for name in names[1:]:
        reader.refuse(f"limits.{name}", "cannot_carry")
    for name in names[:1]:
        if limits.get(name) != requests.get(name, limits.get(name)):
            reader.refuse(f"requests.{name}", "cannot_carry")
    return {"huge_pages": {"size": HUGE_PAGES[names[0]], "amount": limits.get(names[0])}} if names else {}


def _read_amounts(reader: Reader) -> dict[str, str]:
    amounts = {name: reader.quantity(name, syntax.QUANTITY) for name in ("cpu", "memory", GPU_RESOURCE, *HUGE_PAGES)}
    return {name: _canonical(name, amount) for name, amount in amounts.items() if amount is not None}


def _canonical(name: str, amount: str) -> str:
    """GPUs may be written 2, "2" or "2000m": compared as numbers."""
    return quantities.canonical(quantities.parse(amount)) if name == GPU_RESOURCE else amount


def _count(gpus: str) -> object:
    value = quantities.parse(gpus)
    return value.numerator if value.denominator == 1 else gpus


def _read_probe(reader: Reader) -> Document:
    delay_s, period_s = reader.value("initialDelaySeconds"), reader.value("periodSeconds")
    http = reader.part("httpGet", _read_http)
    if not reader.has("httpGet"):
        reader.refuse("httpGet", "required")
    return {
        **(http or {}),
        "delay_s": PROBE_DELAY_S if delay_s is None else delay_s,
        "period_s": PROBE_PERIOD_S if period_s is None else period_s,
        "timeout_s": reader.value("timeoutSeconds"),
        "failure_threshold": reader.value("failureThreshold"),
    }


def _read_http(reader: Reader) -> Document:
    reader.choice("scheme", ("HTTP",))
    path = reader.value("path")
    return {"path": "/" if path is None else path, "port": reader.value("port")}


def _read_toleration(reader: Reader) -> Document:
    names = {"key": "key", "operator": "operator", "value": "value", "effect": "effect"}
    return {name: reader.value(key) for name, key in {**names, "seconds": "tolerationSeconds"}.items()}


def _read_volume(reader: Reader) -> tuple[str, Document]:
    """Name and source: a claim, a secret, memory, or huge pages."""
    name = reader.require("name", reader.text("name", syntax.SLUG), instead="")
    sources = {
        "claim": reader.part("persistentVolumeClaim", _read_claim),
        "secret": reader.part("secret", lambda item: item.value("secretName")),
        **(reader.part("emptyDir", _read_memory) or {}),
    }
    source: Document = {key: value for key, value in sources.items() if value is not None}
    if len(source) != 1:
        reader.refuse("", "volume_source")
    return name, source


def _read_claim(reader: Reader) -> object:
    _accept_only(reader, "readOnly", allowed=False)
    return reader.value("claimName")


def _read_memory(reader: Reader) -> Document:
    medium = reader.choice("medium", ("Memory", *(f"HugePages-{size}" for size in PAGE_SIZES)))
    if not reader.has("medium"):
        reader.refuse("medium", "required")
    if medium and medium != "Memory":
        return {"pages": medium}
    if not reader.has("sizeLimit"):
        reader.refuse("sizeLimit", "required")
    return {"memory": reader.value("sizeLimit")}


def _with_mounts(reader: Reader, document: Document, volumes: dict[str, Document]) -> Document:
    """Join mounts and volumes; what is mounted leaves `volumes`, so that the rest can be refused."""
    claims: list[object] = []
    secrets = document["secrets"]
    mounted: set[str] = set()
    for index, mount in enumerate(reader.parts("volumeMounts", _read_mount, most=checks.LISTED_MAX)):
        name, source = mount["name"], volumes.get(str(mount["name"]), {})
        mounted.add(str(name))
        place = {"mount_path": mount["mountPath"]}
        if "claim" in source and mount["subPath"] is None:
            claims.append({"claim": source["claim"], **place, "read_only": mount["readOnly"]})
        elif "secret" in source and mount["subPath"] is not None and isinstance(secrets, list):
            secrets.append({"name": source["secret"], "key": mount["subPath"], **place})
        elif "memory" in source and mount["mountPath"] == SHARED_MEMORY_PATH and mount["subPath"] is None:
            document["shared_memory"] = source["memory"]
        elif not _is_of_huge_pages(source, mount, document):
            reader.refuse(f"volumeMounts[{index}]", "cannot_carry")
    for name in mounted & volumes.keys():
        del volumes[name]
    return {**document, "volumes": claims}


def _is_of_huge_pages(source: Document, mount: Mapping[str, object], document: Document) -> bool:
    """Whether it is the mount that huge pages get anyway."""
    pages = document.get("huge_pages")
    wanted = f"HugePages-{pages['size']}" if isinstance(pages, dict) else ""
    is_plain = mount["mountPath"] == HUGE_PAGES_PATH and mount["subPath"] is None
    return is_plain and bool(wanted) and source.get("pages") == wanted


def _read_mount(reader: Reader) -> Mapping[str, object]:
    return {key: reader.value(key) for key in ("name", "mountPath", "readOnly", "subPath")}
