"""What is seen of any JSON by any schema, without Spark: what is refused, and what is rescued of the rest."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.types import StructType

from lakestream.spark.screen import looker
from lakestream.testing.any_json import Object, records, schemas, text_of
from lakestream.testing.json_model import lacking, misfits, tagged


@given(schemas.flatmap(lambda schema: st.tuples(st.just(schema), records(schema))))
def test_a_record_is_rescued_from_or_refused_by_a_field(drawn: tuple[StructType, Object]) -> None:
    schema, event = drawn
    look = looker(schema)(text_of(event).encode())
    unfit = [path.removeprefix(".") for path in misfits(event, schema)]
    if unfit:
        assert look.reason is not None
        assert look.reason.rpartition(": ")[2] in unfit
    else:
        assert (look.reason, tagged(look.rescued)) == (None, lacking(event, schema))
