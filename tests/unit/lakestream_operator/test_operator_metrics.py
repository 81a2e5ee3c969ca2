"""What the operator tells of itself."""

from datetime import UTC, datetime, timedelta

from prometheus_client import CollectorRegistry

from lakestream_operator.metrics import Metrics

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def test_a_cycle_in_which_the_clock_was_put_back_took_no_less_than_nothing() -> None:
    registry = CollectorRegistry()
    metrics = Metrics(registry)
    metrics.cycle(began=NOW, woken=NOW, ended=NOW + timedelta(seconds=2))
    metrics.cycle(began=NOW, woken=NOW, ended=NOW - timedelta(minutes=12))
    for name in ("cycle", "reaction"):
        assert registry.get_sample_value(f"lakestream_operator_{name}_seconds_sum") == 2
        assert registry.get_sample_value(f"lakestream_operator_{name}_seconds_count") == 2
