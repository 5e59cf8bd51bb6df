"""What Prometheus can ask the controller: every metric is defined here, and only here.

Values come from what this process knows anyway; a scrape reads no file of the exchange. No label
has an owner or a job, so the number of series depends on the catalog and this code alone.
docs/operations.md describes each of them.
"""

from __future__ import annotations

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    GCCollector,
    Histogram,
    Info,
    PlatformCollector,
    ProcessCollector,
    disable_created_metrics,
)

from .. import __version__

PREFIX = "jupyter_to_job"
WAITING_BUCKETS = (1, 2, 5, 10, 30, 60, 300, 900, 3600, 4 * 3600, 24 * 3600)
RUNNING_BUCKETS = (10, 60, 300, 900, 3600, 2 * 3600, 4 * 3600, 8 * 3600, 24 * 3600, 72 * 3600)
DELIVERY_BUCKETS = (0.5, 1, 2, 5, 10, 30, 60, 120, 300, 900, 3600)
"""Seconds: a job waits for minutes and runs for hours, and its result is there in moments."""
REQUEST_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)


class Metrics:
    """The metrics of one controller, in a registry of its own."""

    def __init__(self) -> None:
        # They are a second series for each, which nothing here asks for.
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = CollectorRegistry()
        for collector in (ProcessCollector, PlatformCollector, GCCollector):
            collector(registry=self.registry)
        self._define_jobs()
        self._define_devices()
        self._define_controller()
        self._define_exchange()
        self._define_calls()

    def _define_jobs(self) -> None:
        self.jobs = self._gauge("jobs", "Jobs in the exchange.", "state", "reason")
        self.deliveries = self._gauge("deliveries", "Results in the exchange.", "state")
        self.oldest_waiting = self._gauge(
            "oldest_waiting_job_seconds", "How long the job waits that has waited longest."
        )
        self.oldest_delivery = self._gauge(
            "oldest_pending_delivery_seconds", "How long the oldest result is not delivered."
        )
        self.ended = self._counter(
            "jobs_ended", "Jobs that ended.", "state", "reason", "flavor", "device"
        )
        self.waiting = self._histogram(
            "job_waiting_seconds", "From submission to start.", WAITING_BUCKETS, "device"
        )
        self.running = self._histogram(
            "job_running_seconds", "From the first cell to the end.", RUNNING_BUCKETS, "device"
        )
        self.delivery = self._histogram(
            "job_delivery_seconds", "From a job's end to its delivery.", DELIVERY_BUCKETS
        )

    def _define_devices(self) -> None:
        self.gpu_given = self._counter(
            "gpu_seconds_given", "Units of a device, times the seconds a run had them.", "device"
        )
        self.gpu_used = self._counter(
            "gpu_seconds_used", "The same, times the mean utilisation in that time.", "device"
        )

    def _define_controller(self) -> None:
        self.build = Info(f"{PREFIX}_controller", "The controller.", registry=self.registry)
        self.build.info({"version": __version__})
        self.ready = self._gauge("ready", "Whether a check of /readyz passes.", "check")
        self.queue = self._gauge("queue_depth", "Jobs that are to be looked at.", "queue")
        self.errors = self._counter("job_errors", "Looks at a job that failed.", "queue")
        self.couriers = self._gauge("couriers", "Couriers under way.")
        self.feed_clients = self._gauge("feed_clients", "Open streams of events.")
        self.failing_watches = self._gauge(
            "failing_watches", "Watches of the API server that do not work.", "resource"
        )

    def _define_exchange(self) -> None:
        self.exchange_used = self._gauge(
            "exchange_used_bytes", "Bytes of jobs and sent files on the exchange's disk."
        )
        self.exchange_free = self._gauge(
            "exchange_free_bytes", "Free bytes of that disk; fewer where its inodes run out first."
        )
        self.exchange_size = self._gauge("exchange_size_bytes", "Bytes of that disk in all.")
        self.exchange_reserve = self._gauge(
            "exchange_reserve_bytes", "Free bytes below which nothing is submitted."
        )

    def _define_calls(self) -> None:
        self.http = self._histogram(
            "http_request_seconds",
            "Requests that the gateway answered.",
            REQUEST_BUCKETS,
            *("method", "route", "code"),
        )
        self.api_calls = self._histogram(
            "kubernetes_request_seconds",
            "Requests that the API server answered.",
            REQUEST_BUCKETS,
            *("verb", "resource", "code"),
        )

    def count_api_call(self, verb: str, resource: str, code: str, seconds: float) -> None:
        """Count a call of the API server."""
        self.api_calls.labels(verb, resource, code).observe(seconds)

    def _gauge(self, name: str, help_text: str, *labels: str) -> Gauge:
        return Gauge(f"{PREFIX}_{name}", help_text, labels, registry=self.registry)

    def _counter(self, name: str, help_text: str, *labels: str) -> Counter:
        return Counter(f"{PREFIX}_{name}", help_text, labels, registry=self.registry)

    def _histogram(
        self, name: str, help_text: str, buckets: tuple[float, ...], *labels: str
    ) -> Histogram:
        full_name = f"{PREFIX}_{name}"
        return Histogram(full_name, help_text, labels, buckets=buckets, registry=self.registry)
