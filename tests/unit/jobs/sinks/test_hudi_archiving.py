import pytest

from lakestream.sinks.hudi.archiving import behind_half_archived


@pytest.mark.parametrize(
    ("names", "newer"),
    [
        ([], None),
        (["1.commit.requested", "1.inflight", "1.commit", "2.commit.requested"], None),
        (["1.replacecommit", "2.deltacommit.requested", "2.deltacommit.inflight", "2.deltacommit"], 1),
        # What instants began with goes in any order.
        (["1.commit.requested", "1.commit", "2.replacecommit", "3.commit.requested", "3.commit"], 1),
        (["1_2.commit", "3_4.replacecommit", "5.clustering.requested", "5_6.replacecommit", "7_8.commit"], 2),
        (["1_2.deltacommit", "3_4.replacecommit"], 0),
        # It came after its rollback.
        (["1.commit.requested", "1.inflight", "1.commit", "2.commit"], None),
        # Others do not begin so, or are of no files.
        (["1.clean", "2.rollback", "3.savepoint", "archived", "hoodie.properties", ".aux"], None),
    ],
)
def test_what_an_archiving_has_left_has_lost_its_beginning(names: list[str], newer: int | None) -> None:
    assert behind_half_archived(names) == newer
