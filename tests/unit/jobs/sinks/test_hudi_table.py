import re
from dataclasses import replace

import pytest
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DayTimeIntervalType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    NullType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from lakestream.errors import SettingsChangedError, SettingsError
from lakestream.sinks.hudi.settings import HudiSettings
from lakestream.sinks.hudi.stats import batch_of, marks, sink_commit
from lakestream.sinks.hudi.table import (
    LAYOUT,
    kept_properties,
    marks_deletes,
    require_columns,
    require_evolution,
    require_partitions,
    require_same_table,
    with_version,
)
from lakestream_api import IndexType, Operation, TableType, TableVersion

ORDERS = HudiSettings(
    path="file:///lake/orders", table="orders", record_key=("order_id",), ordering_field="version", partition_by=("dt",)
)
PROPERTIES = {
    "hoodie.table.version": "6",
    "hoodie.table.type": "MERGE_ON_READ",
    "hoodie.table.recordkey.fields": "order_id",
    "hoodie.table.partition.fields": "dt",
    "hoodie.table.ordering.fields": "version",
    "hoodie.table.keygenerator.type": "SIMPLE",
    "hoodie.datasource.write.hive_style_partitioning": "true",
    "hoodie.datasource.write.partitionpath.urlencode": "true",
    LAYOUT: "bucket:4",
}
NEWER = ("hoodie.table.ordering.fields", "hoodie.table.keygenerator.type")
COLUMNS = StructType().add("order_id", StringType()).add("version", LongType()).add("dt", StringType())


def settings(**changes: object) -> HudiSettings:
    return HudiSettings(**{**vars(ORDERS), **changes})


def test_the_same_table_is_accepted() -> None:
    require_same_table(PROPERTIES, ORDERS)


def test_a_table_that_somebody_else_made_has_no_layout_to_compare() -> None:
    require_same_table({name: value for name, value in PROPERTIES.items() if name != LAYOUT}, ORDERS)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"table_version": TableVersion.NINE}, "hudi.tableVersion: .* has '6', the document says '9'"),
        ({"table_type": TableType.COPY_ON_WRITE}, "hudi.tableType: .* has 'MERGE_ON_READ', the document says 'COPY"),
        ({"record_key": ("order_id", "line")}, "hudi.recordKey: .* has 'order_id', the document says 'order_id,line'"),
        ({"partition_by": ()}, "hudi.partitionBy: .* has 'dt', the document says 'none'"),
        ({"ordering_field": "updated_at"}, "hudi.orderingField: .* has 'version', the document says 'updated_at'"),
        ({"buckets": 8}, "hudi.index: .* has 'bucket:4', the document says 'bucket:8'"),
    ],
)
def test_another_table_is_refused_with_what_to_do(changed: dict[str, object], message: str) -> None:
    with pytest.raises(SettingsChangedError, match=f"{message}.*Set it back; or, to write a new table"):
        require_same_table(PROPERTIES, settings(**changed))


@pytest.mark.parametrize(
    ("says", "has", "version"),
    [(None, "6", TableVersion.SIX), (None, "9", TableVersion.NINE), (TableVersion.NINE, "6", TableVersion.NINE)],
)
def test_a_table_stays_of_its_version_unless_the_document_says_otherwise(
    says: TableVersion | None, has: str, version: TableVersion
) -> None:
    assert with_version({"hoodie.table.version": has}, settings(table_version=says)).version is version


@pytest.mark.parametrize("has", ["5", "8", "10"])
def test_a_table_of_a_version_that_is_not_written_is_refused(has: str) -> None:
    with pytest.raises(SettingsChangedError, match=rf"is of Hudi's table version {has}, and LakeStream writes 6 and 9"):
        with_version({"hoodie.table.version": has}, ORDERS)


@pytest.mark.parametrize(
    "name",
    [
        "hoodie.table.keygenerator.type",
        "hoodie.datasource.write.hive_style_partitioning",
        "hoodie.datasource.write.partitionpath.urlencode",
    ],
)
def test_a_table_whose_keys_are_elsewhere_is_refused(name: str) -> None:
    with pytest.raises(SettingsChangedError, match=f"was made with {name}=COMPLEX, .* would get a second row"):
        require_same_table({**PROPERTIES, name: "COMPLEX"}, ORDERS)


KEYGEN = "org.apache.hudi.keygen"
OLDER = {
    **{name: value for name, value in PROPERTIES.items() if name not in {LAYOUT, *NEWER}},
    "hoodie.table.precombine.field": "version",
    "hoodie.table.keygenerator.class": f"{KEYGEN}.SimpleKeyGenerator",
    "hoodie.compaction.payload.class": "org.apache.hudi.common.model.DefaultHoodieRecordPayload",
}
"""As Hudi 0.14 and 0.15 make the table."""


@pytest.mark.parametrize(
    ("generator", "changed"),
    [
        ("SimpleKeyGenerator", {}),
        ("SimpleAvroKeyGenerator", {}),
        ("NonpartitionedKeyGenerator", {"partition_by": ()}),
        ("ComplexKeyGenerator", {"record_key": ("order_id", "line")}),
        ("ComplexAvroKeyGenerator", {"partition_by": ("dt", "shop"), "operation": Operation.INSERT}),
    ],
)
def test_a_table_of_an_older_release_is_accepted(generator: str, changed: dict[str, object]) -> None:
    wanted = settings(**changed)
    has = {
        "hoodie.table.recordkey.fields": ",".join(wanted.record_key),
        "hoodie.table.partition.fields": ",".join(wanted.partition_by),
        "hoodie.table.keygenerator.class": f"{KEYGEN}.{generator}",
    }
    require_same_table({**OLDER, **has}, wanted)


def test_a_table_of_an_older_release_has_its_ordering_field_for_life() -> None:
    with pytest.raises(SettingsChangedError, match=r"hudi.orderingField: .* has 'version', the document says 'at'"):
        require_same_table(OLDER, settings(ordering_field="at"))


def test_inserts_go_by_no_ordering_field_also_where_an_older_release_names_one() -> None:
    has = {"hoodie.compaction.payload.class": "org.apache.hudi.common.model.OverwriteWithLatestAvroPayload"}
    require_same_table({**OLDER, **has}, settings(operation=Operation.INSERT, ordering_field=None))


@pytest.mark.parametrize("generator", ["TimestampBasedKeyGenerator", "ComplexKeyGenerator", "CustomAvroKeyGenerator"])
def test_a_table_of_an_older_release_whose_keys_are_elsewhere_is_refused(generator: str) -> None:
    has = {"hoodie.table.keygenerator.class": f"{KEYGEN}.{generator}"}
    said = f"class={KEYGEN}.{generator}, and LakeStream writes with {KEYGEN}.SimpleKeyGenerator"
    for operation in Operation:
        with pytest.raises(SettingsChangedError, match=said):
            require_same_table({**OLDER, **has}, settings(operation=operation))


def test_a_table_whose_keys_may_lack_the_name_of_their_column_is_refused() -> None:
    """As Hudi 0.14.1 to 1.0.2 write them where partitions are of several columns."""
    wanted = settings(partition_by=("dt", "shop"))
    partitions = {"hoodie.table.partition.fields": "dt,shop"}
    has = {**partitions, "hoodie.table.keygenerator.class": f"{KEYGEN}.ComplexKeyGenerator"}
    with pytest.raises(SettingsChangedError, match=r"LakeStream writes it, as order_id:1: .* would get a second row"):
        require_same_table({**OLDER, **has}, wanted)
    require_same_table({**PROPERTIES, **partitions, "hoodie.table.keygenerator.type": "COMPLEX"}, wanted)


OF_SEVERAL = {
    **{name: value for name, value in PROPERTIES.items() if name not in {LAYOUT, "hoodie.table.ordering.fields"}},
    "hoodie.table.partition.fields": "dt,shop",
    "hoodie.table.keygenerator.type": "COMPLEX",
}
BY_NEW_NAME = {"hoodie.table.ordering.fields": "version"}
NINE = {"hoodie.table.version": "9", **BY_NEW_NAME}


@pytest.mark.parametrize(
    "has",
    [
        pytest.param({"hoodie.table.precombine.field": "version"}, id="6, by 1.0"),
        pytest.param({"hoodie.table.precombine.field": "version", "hoodie.table.initial.version": "6"}, id="6, said"),
        pytest.param({**NINE, "hoodie.table.initial.version": "8"}, id="9, of 8 by 1.0"),
        pytest.param(NINE, id="9, of 6 by 0.14 to 1.0"),
    ],
)
def test_so_is_one_of_hudi_1_0_which_keeps_no_class(has: dict[str, str]) -> None:
    wanted = settings(partition_by=("dt", "shop"))
    wanted = with_version({**OF_SEVERAL, **has}, wanted)
    with pytest.raises(SettingsChangedError, match=r"LakeStream writes it, as order_id:1: .* would get a second row"):
        require_same_table({**OF_SEVERAL, **has}, wanted)
    require_same_table({**OF_SEVERAL, **has}, replace(wanted, operation=Operation.INSERT))
    single = {"hoodie.table.partition.fields": "dt", "hoodie.table.keygenerator.type": "SIMPLE"}
    require_same_table({**OF_SEVERAL, **has, **single}, replace(wanted, partition_by=("dt",)))


@pytest.mark.parametrize(
    "has",
    [
        pytest.param(BY_NEW_NAME, id="6, by a driver that was killed before it wrote its layout down"),
        pytest.param({**BY_NEW_NAME, LAYOUT: "bucket:4"}, id="6"),
        pytest.param({**NINE, "hoodie.table.initial.version": "9"}, id="9, by a driver that was killed, or by 1.1"),
        pytest.param({**NINE, LAYOUT: "bucket:4"}, id="9, of 6"),
    ],
)
def test_those_of_lakestream_have_the_name_of_the_column_in_their_keys(has: dict[str, str]) -> None:
    require_same_table(
        {**OF_SEVERAL, **has}, with_version({**OF_SEVERAL, **has}, settings(partition_by=("dt", "shop")))
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("hoodie.record.merge.mode", "COMMIT_TIME_ORDERING"),
        ("hoodie.record.merge.mode", "CUSTOM"),
        # As Hudi 0.15 makes tables, unless it is told otherwise.
        ("hoodie.compaction.payload.class", "org.apache.hudi.common.model.OverwriteWithLatestAvroPayload"),
        ("hoodie.compaction.payload.class", "org.apache.hudi.common.model.PartialUpdateAvroPayload"),
    ],
)
def test_a_table_that_takes_another_version_of_a_key_is_refused(name: str, value: str) -> None:
    with pytest.raises(SettingsChangedError, match=f"was made with {name}={value}, .* another version of a key"):
        require_same_table({**PROPERTIES, name: value}, ORDERS)


@pytest.mark.parametrize(
    ("ordering_field", "mode", "payload"),
    [
        ("version", "EVENT_TIME_ORDERING", "DefaultHoodieRecordPayload"),
        (None, "COMMIT_TIME_ORDERING", "OverwriteWithLatestAvroPayload"),
    ],
)
def test_a_table_that_takes_the_same_version_is_accepted(ordering_field: str | None, mode: str, payload: str) -> None:
    has = {
        "hoodie.table.ordering.fields": ordering_field or "",
        "hoodie.record.merge.mode": mode,
        "hoodie.compaction.payload.class": f"org.apache.hudi.common.model.{payload}",
    }
    require_same_table({**PROPERTIES, **has}, settings(ordering_field=ordering_field))


def test_of_a_table_without_partitions_their_paths_do_not_matter() -> None:
    names = (
        "hoodie.table.version",
        "hoodie.table.type",
        "hoodie.table.recordkey.fields",
        "hoodie.table.ordering.fields",
        LAYOUT,
    )
    require_same_table({name: PROPERTIES[name] for name in names}, settings(partition_by=()))


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"record_key": ("id",)}, "recordKey"),
        ({"ordering_field": "ts"}, "orderingField"),
        ({"partition_by": ("day",)}, "partitionBy"),
    ],
)
def test_settings_that_name_no_column_are_refused(changed: dict[str, object], field: str) -> None:
    with pytest.raises(SettingsError, match=f"hudi.{field}: there is no column .*there are order_id, version, dt"):
        require_columns(COLUMNS, settings(**changed))


def test_keys_of_several_values_are_refused() -> None:
    with pytest.raises(SettingsError, match=r"hudi.recordKey: column at is a struct<shop:string>; a column of spec"):
        require_columns(
            StructType([*COLUMNS.fields]).add("at", StructType().add("shop", StringType())),
            settings(record_key=("at",)),
        )


def test_columns_named_as_hudis_are_refused() -> None:
    with pytest.raises(SettingsError, match=r"column _hoodie_is_deleted: .* rename it"):
        require_columns(StructType([*COLUMNS.fields]).add("_hoodie_is_deleted", BooleanType()), ORDERS)


@pytest.mark.parametrize("type", [TimestampType(), TimestampNTZType(), BinaryType()])
def test_partitions_whose_names_are_not_read_back_are_refused(type: DataType) -> None:
    """Of `date_trunc('hour', _arrival)` Spark reads null in every row."""
    output = StructType([*COLUMNS.fields, StructField("hour", type)])
    with pytest.raises(
        SettingsError, match=r"hudi.partitionBy: column hour is a .* date_format\(hour, 'yyyy-MM-dd-HH'\)"
    ):
        require_partitions(output, settings(partition_by=("dt", "hour")))
    require_partitions(output, ORDERS)


@pytest.mark.parametrize("name", ["a-b", "a.b", "a b", "1st", "\u0663rd", "\U0001f600", "\U00020000", "`"])
def test_columns_with_names_that_avro_does_not_take_are_refused(name: str) -> None:
    """Hudi fails at them, and says neither where nor what to do."""
    named = StructType([StructField(name, LongType())])
    with pytest.raises(SettingsError, match=rf"column {re.escape(name)}: .* rename it in spec.transform"):
        require_columns(StructType([*COLUMNS.fields, *named.fields]), ORDERS)
    nested = StructType([*COLUMNS.fields, StructField("in", ArrayType(MapType(StringType(), named)))])
    with pytest.raises(SettingsError, match=rf"column in\.{re.escape(name)}: "):
        require_columns(nested, ORDERS)


@pytest.mark.parametrize(
    ("type", "said"),
    [
        (NullType(), "column new: a NULL without a type; CAST it AS"),
        (ArrayType(NullType()), "column new: a NULL without a type"),
        (StructType().add("a", LongType()).add("b", NullType()), "column new.b: a NULL without a type"),
        (MapType(LongType(), StringType()), "column new: keys of a map are texts in a Hudi table, and not bigint"),
        (StructType(), "column new: a struct without fields; leave it out in spec.transform"),
        (StructType().add("a", LongType()).add("a", LongType()), "column new: a struct with field a twice; rename"),
        (
            ArrayType(StructType().add("id", LongType()).add("userId", LongType()).add("userid", LongType())),
            "column new: a struct with fields userId and userid, and no Spark reads a table with both; rename one",
        ),
        (DayTimeIntervalType(), "column new: a Hudi table has no interval day to second; CAST it in spec.transform"),
    ],
)
def test_columns_of_types_that_hudi_does_not_take_are_refused(type: DataType, said: str) -> None:
    """`NULL AS note` would make a table that no batch can be written to, and that takes no other type for it later."""
    with pytest.raises(SettingsError, match=said):
        require_columns(StructType([*COLUMNS.fields, StructField("new", type)]), ORDERS)


def test_columns_of_all_other_types_are_taken() -> None:
    scalars = (BinaryType, BooleanType, ByteType, DateType, DoubleType, FloatType, ShortType, TimestampNTZType)
    types = [*(kind() for kind in scalars), DecimalType(10, 2), MapType(StringType(), ArrayType(TimestampType()))]
    added = [StructField(f"c{number}", type) for number, type in enumerate(types)]
    require_columns(StructType([*COLUMNS.fields, *added]), ORDERS)


@pytest.mark.parametrize("name", ["größe", "価格", "_1", "a1", "a\u0663", "SELECT"])
def test_columns_have_names_of_any_language(name: str) -> None:
    require_columns(StructType([*COLUMNS.fields, StructField(name, LongType())]), ORDERS)


def test_columns_may_be_added() -> None:
    require_evolution(COLUMNS, StructType([*COLUMNS.fields]).add("note", StringType()), ORDERS)


def test_columns_may_not_go() -> None:
    with pytest.raises(SettingsChangedError, match=r"column dt of the table .*CAST\(NULL AS string\) AS dt"):
        require_evolution(COLUMNS, StructType(COLUMNS.fields[:2]), ORDERS)


@pytest.mark.parametrize(
    ("has", "now"),
    [
        (IntegerType(), LongType()),
        (IntegerType(), DoubleType()),
        (FloatType(), DoubleType()),
        (DecimalType(10, 2), DecimalType(12, 4)),
        (StructType().add("a", IntegerType()), StructType().add("b", StringType()).add("a", IntegerType())),
        (
            StructType().add("s", StructType().add("a", IntegerType())),
            StructType().add("s", StructType().add("a", IntegerType()).add("b", StringType())),
        ),
    ],
    ids=lambda type: type.simpleString(),
)
def test_columns_may_widen_and_not_narrow(has: DataType, now: DataType) -> None:
    narrow, wide = ([*COLUMNS.fields, StructField("x", type)] for type in (has, now))
    require_evolution(StructType(narrow), StructType(wide), ORDERS)
    with pytest.raises(SettingsChangedError, match=r"column x of the table .* CAST it AS"):
        require_evolution(StructType(wide), StructType(narrow), ORDERS)


@pytest.mark.parametrize(
    ("has", "now"),
    [
        (LongType(), DoubleType()),
        (IntegerType(), FloatType()),
        (IntegerType(), StringType()),
        (DateType(), TimestampType()),
        (DecimalType(10, 2), DecimalType(11, 4)),
        (ArrayType(IntegerType()), ArrayType(LongType())),
        (MapType(StringType(), IntegerType()), MapType(StringType(), LongType())),
        (StructType().add("a", IntegerType()), StructType().add("a", LongType())),
        (
            ArrayType(StructType().add("a", LongType())),
            ArrayType(StructType().add("a", LongType()).add("b", LongType())),
        ),
        (StructType().add("a", IntegerType()), IntegerType()),
        (StructType().add("a", LongType()).add("b", LongType()), StructType().add("a", LongType())),
    ],
    ids=lambda type: type.simpleString(),
)
def test_columns_may_not_change_otherwise(has: DataType, now: DataType) -> None:
    table, output = (StructType([*COLUMNS.fields, StructField("x", type)]) for type in (has, now))
    with pytest.raises(SettingsChangedError, match=r"column x of the table .*, and the output has a .* another name"):
        require_evolution(table, output, ORDERS)


def test_columns_of_keys_and_versions_may_only_widen_from_int_to_bigint() -> None:
    def columns(type: DataType) -> StructType:
        return StructType([COLUMNS.fields[0], StructField("version", type), COLUMNS.fields[2]])

    require_evolution(columns(IntegerType()), COLUMNS, ORDERS)
    with pytest.raises(SettingsChangedError, match=r"column version of the table .* is a int, .* has a double"):
        require_evolution(columns(IntegerType()), columns(DoubleType()), ORDERS)


def test_versions_of_deletes_in_log_files_keep_their_type() -> None:
    table, output = (
        StructType().add("order_id", StringType()).add("version", kind) for kind in (IntegerType(), LongType())
    )
    deleting = replace(ORDERS, delete_when="op = 'd'", partition_by=())
    require_evolution(table, output, replace(deleting, delete_when=None))
    require_evolution(table, output, replace(deleting, table_type=TableType.COPY_ON_WRITE))
    require_evolution(table, table, deleting)
    with pytest.raises(SettingsChangedError, match=r"column version .* is a int, .* CAST it AS int"):
        require_evolution(table, output, deleting)
    # Once deletes were marked, the table may have them in its log files.
    marked, wider = (StructType([*one.fields]).add("_hoodie_is_deleted", BooleanType()) for one in (table, output))
    with pytest.raises(SettingsChangedError, match="column version"):
        require_evolution(marked, wider, ORDERS)


@pytest.mark.parametrize("index", [IndexType.GLOBAL_SIMPLE, IndexType.GLOBAL_BLOOM])
def test_a_table_whose_keys_may_be_in_two_partitions_gets_no_global_index(index: IndexType) -> None:
    """Hudi 1.2.0 makes two rows of the next version of such a key, both in its partition."""
    everywhere, within = replace(ORDERS, index=index), replace(ORDERS, index=IndexType.SIMPLE)
    made = {**PROPERTIES, LAYOUT: "free"}
    always = made | kept_properties(everywhere, made)
    require_same_table(always, everywhere)
    # It may go the other way, and then not back.
    since = always | kept_properties(within, always)
    require_same_table(since, within)
    require_same_table(since, replace(within, index=IndexType.BLOOM))
    with pytest.raises(SettingsChangedError, match=f"hudi.index: .* the document says {index.value}: a key that is in"):
        require_same_table(since, everywhere)
    for other in (replace(within, partition_by=()), replace(within, operation=Operation.INSERT), ORDERS):
        assert "lakestream.unique" not in kept_properties(other, {})


def test_older_readers_are_told_what_orders_versions() -> None:
    six, nine = (kept_properties(settings(table_version=version), {}) for version in TableVersion)
    kept = {LAYOUT: "bucket:4", "hoodie.bootstrap.index.enable": "false"}
    assert six == {**kept, "hoodie.table.precombine.field": "version"}
    assert nine == kept
    inserts = settings(operation=Operation.INSERT, ordering_field=None)
    assert kept_properties(inserts, {}) == {**kept, LAYOUT: "free"}


def test_a_table_gets_the_properties_that_it_lacks() -> None:
    ours = {LAYOUT: "bucket:4", "hoodie.table.precombine.field": "version"}
    assert kept_properties(ORDERS, ours) == {"hoodie.bootstrap.index.enable": "false"}
    of_others = {"hoodie.bootstrap.base.path": "s3a://before", "hoodie.table.precombine.field": "version"}
    assert kept_properties(ORDERS, of_others) == {LAYOUT: "bucket:4"}
    assert kept_properties(ORDERS, kept_properties(ORDERS, {})) == {}


def test_a_table_that_has_the_delete_mark_keeps_it() -> None:
    assert not marks_deletes(None, ORDERS)
    assert marks_deletes(None, settings(delete_when="op = 'd'"))
    assert marks_deletes(StructType().add("_hoodie_is_deleted", BooleanType()), ORDERS)


def test_a_commit_is_found_by_its_marks() -> None:
    written = marks(12, "5e0c11aa")
    assert batch_of(written, "5e0c11aa") == 12
    assert batch_of(written, "another") is None
    assert batch_of({}, "5e0c11aa") is None


def test_statistics_of_a_commit() -> None:
    def stat(path: str | None, **counts: int) -> dict[str, object]:
        base = {"fileId": path or "none", "numWrites": 0, "numInserts": 0, "numUpdateWrites": 0, "totalWriteBytes": 0}
        return {"path": path, "partitionPath": "dt=2026-01-31", **base, **counts}

    commit = sink_commit(
        "20260131120000000",
        [
            stat("dt=2026-01-31/b.parquet", numWrites=10, numInserts=2, numUpdateWrites=1, totalWriteBytes=1000),
            stat("dt=2026-01-31/a.parquet", numWrites=3, numInserts=3, totalWriteBytes=500),
            stat(None, numWrites=-1, numInserts=-1),
        ],
    )
    assert (commit.rows, commit.bytes, commit.instant) == (6, 1500, "20260131120000000")
    assert commit.file_groups == 3
    assert [(entry.path[-9:], entry.rows) for entry in commit.files] == [("a.parquet", 3), ("b.parquet", 10)]
