"""The metrics of a service under test, parsed by the parser of the Prometheus client library."""

from __future__ import annotations

import time
import urllib.request

from prometheus_client.parser import text_string_to_metric_families

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


def samples(url: str) -> Samples:
    """Return all samples by name and labels."""
    with urllib.request.urlopen(f"{url}/metrics", timeout=300) as response:  # noqa: S310  # the service under test
        assert response.headers["Content-Type"].startswith("text/plain; version=0.0.4")
        text = response.read().decode()
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def value(url: str, name: str, **labels: str) -> float:
    """Return the value of a sample, or 0 if it is missing."""
    return samples(url).get((name, frozenset(labels.items())), 0.0)


def becomes(url: str, expected: float, name: str, **labels: str) -> bool:
    """Wait for at least a minute until a sample has the expected value. Return whether it has the value.

    Gauges are updated once a second.
    """
    for _ in range(600):  # much longer than needed, in case the machine is busy
        if value(url, name, **labels) == expected:
            return True
        time.sleep(0.1)
    return False
