"""What any JSON becomes by any schema, without Spark: equal, or refused by a field that is why."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.types import StructType

from lakestream.spark.events import EventReader
from lakestream.testing.any_json import Object, records, schemas, text_of
from lakestream.testing.json_model import is_same, lacking, misfits, tagged


# Times are told apart by the column, so that what a record becomes may hang on those beside it.
@given(schemas.flatmap(lambda schema: st.tuples(st.just(schema), st.lists(records(schema), max_size=6))))
def test_a_record_comes_out_equal_or_is_refused_by_a_field(drawn: tuple[StructType, list[Object]]) -> None:
    schema, events = drawn
    found = EventReader(schema).read([text_of(event).encode() for event in events])
    columns = [column.to_pylist() for column in found.columns]
    for number, event in enumerate(events):
        row = {name: column[number] for name, column in zip(schema.names, columns, strict=True)}
        reason, rescued = found.reasons[number].as_py(), found.rescued[number].as_py()
        if unfit := [path.removeprefix(".") for path in misfits(event, schema)]:
            assert reason is not None, (event, row)
            assert reason.rpartition(": ")[2] in unfit, (event, row)
        else:
            assert (reason, tagged(rescued)) == (None, lacking(event, schema)), (event, row)
            assert is_same(event, schema, row), (event, row)
