"""Exporter text as exporters write it, and as they should not."""

import math

from clusters.telemetry.parse import parse

LABELS = 'gpu="0",UUID="GPU-a",device="nvidia0",modelName="NVIDIA H100 80GB HBM3"'


def line(name: str, value: object, labels: str = LABELS) -> str:
    return f"DCGM_FI_DEV_{name}{{{labels}}} {value}"


def test_a_gpu_is_read_with_its_pod_and_values() -> None:
    own = LABELS + ',Hostname="n1",container="main",namespace="team-x",pod="r-1"'
    text = "\n".join(
        [
            "# TYPE DCGM_FI_DEV_GPU_UTIL gauge",
            line("GPU_UTIL", 97, own),
            line("FB_USED", 100, own),
            line("FB_FREE", 28, own),
        ]
    )

    (reading,) = parse(text)

    assert (reading.gpu, reading.index, reading.namespace, reading.pod) == ("GPU-a", 0, "team-x", "r-1")
    assert reading.values == {"utilisation": 97.0, "memory_used": 100.0, "memory_free": 28.0}
    assert reading.memory_total == 128.0


def test_a_device_that_shows_with_and_without_its_pod_counts_once() -> None:
    text = "\n".join(
        [
            line("GPU_UTIL", 50),
            line("GPU_UTIL", 50, LABELS + ',pod="dcgm-exporter-x",exported_pod="train-0",exported_namespace="team-x"'),
            line("GPU_UTIL", 50, LABELS + ',pod="train-0",namespace="team-x"'),
        ]
    )

    (reading,) = parse(text)

    assert (reading.pod, reading.namespace, reading.values) == ("train-0", "team-x", {"utilisation": 50.0})


def test_both_spellings_of_the_labels_are_read() -> None:
    (reading,) = parse(line("GPU_UTIL", 5, 'gpu="3",uuid="GPU-b",hostname="n1",pod="p",namespace="n"'))

    assert (reading.gpu, reading.index, reading.pod) == ("GPU-b", 3, "p")


def test_a_mig_instance_is_a_device_of_its_own() -> None:
    text = "\n".join(
        line("FB_USED", used, LABELS + f',GPU_I_PROFILE="1g.10gb",GPU_I_ID="{number}"')
        for number, used in ((7, 1), (8, 2))
    )

    assert [(reading.gpu, reading.values["memory_used"]) for reading in parse(text)] == [
        ("GPU-a/7", 1.0),
        ("GPU-a/8", 2.0),
    ]


def test_blank_and_broken_values_are_not_measured_and_never_zero() -> None:
    broken = ["9223372036854775794", "NaN", "+Inf", "", "none"]
    text = "\n".join(
        [line("POWER_USAGE", value) for value in broken] + [line("GPU_UTIL", 1), "garbage {", "}{", "\x00"]
    )

    (reading,) = parse(text)

    assert reading.values == {"utilisation": 1.0}
    assert not any(math.isnan(value) for value in reading.values.values())


def test_quotes_and_backslashes_in_a_label_survive() -> None:
    (reading,) = parse(line("GPU_UTIL", 1, r'gpu="0",UUID="GPU-a",pod="a\"b\\c",namespace="n"'))

    assert reading.pod == 'a"b\\c'


def test_no_text_is_no_reading() -> None:
    assert parse("") == []
