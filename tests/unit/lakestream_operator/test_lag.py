"""One definition of lag, as a commit leaves it and as it was just before."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from lakestream_operator.lag import lag_after, lag_before
from lakestream_operator.testing.documents import report_of

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def test_a_commit_takes_away_the_age_of_what_its_batch_covered() -> None:
    [batch] = report_of(NOW, lag=40.0).batches[-1:]
    batch = batch.model_copy(update={"horizon": NOW - timedelta(seconds=40), "records": 1_200, "arrival_rate": 100.0})
    assert lag_after(batch) == 40.0
    assert lag_before(batch) == 40.0 + 12.0


def test_at_the_tip_what_came_meanwhile_is_no_lag_unless_the_batch_took_long() -> None:
    [batch] = report_of(NOW).batches[-1:]
    interval = batch.trigger_interval.total_seconds()
    for intervals, lag in ((2.0, 0.0), (2.1, 2.1 * interval)):
        horizon = NOW - timedelta(seconds=intervals * interval)
        assert lag_after(batch.model_copy(update={"horizon": horizon})) == lag


@pytest.mark.parametrize("minutes", [-3, 3])
def test_clocks_of_a_cluster_that_are_off_make_no_lag_and_hide_none(minutes: int) -> None:
    [batch] = report_of(NOW).batches[-1:]
    seen = {"horizon": NOW - timedelta(minutes=minutes), "records": 1_200, "arrival_rate": 100.0}
    for age, lag in ((8.0, 0.0), (40.0, 40.0)):
        told = batch.model_copy(update={**seen, "horizon_age_seconds": age})
        assert (lag_after(told), lag_before(told)) == (lag, age + 12.0)


def test_of_a_driver_that_does_not_tell_its_horizon_the_stages_are_the_least_that_it_was() -> None:
    [batch] = report_of(NOW, lag=3.0).batches[-1:]
    batch = batch.model_copy(update={"horizon": None})
    assert lag_after(batch) == 3.0
    assert lag_before(batch) == max(3.0, batch.seconds.total)
