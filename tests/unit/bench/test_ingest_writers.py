"""Which writers `ingest` measures."""

from lakestream_bench.ingest import Contender

PLAIN = {"options": {"hoodie.parquet.dictionary.enabled": "false"}}


def test_a_hudi_table_with_other_fields_is_measured_beside_the_one_without() -> None:
    assert Contender.of("cow", PLAIN) == [Contender("cow", "cow"), Contender("cow *", "cow", PLAIN)]
    assert Contender.of("cow", {}) == [Contender("cow", "cow")]


def test_files_of_json_have_no_fields_of_hudi() -> None:
    assert Contender.of("json", PLAIN) == [Contender("json", "json")]
