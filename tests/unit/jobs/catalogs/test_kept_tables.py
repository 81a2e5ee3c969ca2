"""What is asked of a metastore, whichever it is, and when."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

import pytest

from lakestream.catalogs.metastore import CatalogError, KeptTables, RefusedError, Values
from lakestream.catalogs.tables import CatalogTable, Column, Format, values_of

FORMAT = Format("in", "out", "serde", {"path": "s3a://lake/orders"})
TABLE = CatalogTable(
    "orders", "s3a://lake/orders", (Column("a", "string"), Column("b", "int")), (Column("dt", "string"),), FORMAT, {}
)


class Memory:
    """A metastore, the calls that it gets, and how often it is connected to."""

    def __init__(self) -> None:
        self.tables: dict[str, CatalogTable] = {}
        self.described: dict[Values, tuple[Column, ...]] = {}
        self.calls: list[str] = []
        self.connections = 0
        self.breaks_at: str | None = None
        self.breaks_before: int | None = None
        """With so many calls."""
        self.refuses: set[str] = set()

    @contextmanager
    def opened(self) -> Iterator[Memory]:
        self.connections += 1
        yield self

    def _call(self, name: str) -> None:
        self.calls.append(name)
        if name == self.breaks_at:
            raise CatalogError(name)
        if len(self.calls) == self.breaks_before:
            raise CatalogError("throttled")

    def find(self, name: str) -> CatalogTable | None:
        self._call("find")
        return self.tables.get(name)

    def create(self, table: CatalogTable) -> None:
        self._call("create")
        self.tables[table.name] = table

    def alter(self, table: CatalogTable) -> None:
        self._call("alter")
        self.tables[table.name] = replace(table, properties={**self.tables[table.name].properties, **table.properties})

    def partitions(self, table: CatalogTable) -> Mapping[Values, str]:
        self._call("partitions")
        return {values: "/".join(values) for values in self.described}

    def add_partitions(self, table: CatalogTable, paths: Sequence[str]) -> None:
        self._call("add_partitions")
        assert len(paths) <= 100
        if refused := self.refuses & set(paths):
            raise RefusedError(f"too long: {len(refused)}")
        self.described |= {values_of(path): table.columns for path in paths}

    def alter_partitions(self, table: CatalogTable, partitions: Mapping[Values, str]) -> None:
        self._call("alter_partitions")
        assert all(name == "/".join(values) for values, name in partitions.items())
        self.described |= dict.fromkeys(partitions, table.columns)

    def driver(self, table: CatalogTable = TABLE) -> KeptTables:
        self.calls.clear()
        return KeptTables(self.opened, "lake", [table], field="catalog.hive.table")


def paths(count: int) -> set[str]:
    return {f"dt={number}" for number in range(count)}


def test_it_is_connected_to_when_there_is_something_to_say_alone() -> None:
    memory = Memory()
    kept = memory.driver()
    for some in (paths(1), paths(1), set(), paths(2), paths(2)):
        kept.keep(some)
    assert memory.connections == 2
    assert memory.calls == ["find", "create", "add_partitions", "add_partitions"]


def test_an_hour_of_batches_into_one_new_partition_is_one_call() -> None:
    memory = Memory()
    kept = memory.driver()
    kept.keep({"dt=2026-01-31/hour=11"})
    memory.calls.clear()
    for _ in range(360):
        kept.keep({"dt=2026-01-31/hour=12"})
    assert (memory.calls, memory.connections) == (["add_partitions"], 2)


def test_a_thousand_partitions_are_ten_calls() -> None:
    memory = Memory()
    memory.driver().keep(paths(1000))
    assert memory.calls.count("add_partitions") == 10
    assert len(memory.described) == 1000


def test_columns_keep_the_places_that_they_have_and_new_ones_come_last() -> None:
    memory = Memory()
    memory.driver().keep(paths(150))
    wider = replace(TABLE, columns=(Column("new", "date"), Column("b", "bigint"), Column("a", "string")))
    memory.driver(wider).keep(paths(150))
    assert memory.tables["orders"].columns == (Column("a", "string"), Column("b", "bigint"), Column("new", "date"))
    assert memory.calls == ["find", "partitions", "alter_partitions", "alter_partitions", "alter"]
    assert set(memory.described.values()) == {memory.tables["orders"].columns}
    memory.driver(wider).keep(paths(150))
    assert memory.calls == ["find", "partitions"]


def test_a_driver_that_dies_between_partitions_and_table_leaves_something_to_do() -> None:
    memory = Memory()
    memory.driver().keep(paths(1))
    wider = replace(TABLE, columns=(*TABLE.columns, Column("c", "int")))
    memory.breaks_at = "alter"
    kept = memory.driver(wider)
    with pytest.raises(CatalogError):
        kept.keep(paths(1))
    memory.breaks_at = None
    kept.keep(paths(1))
    assert memory.tables["orders"].columns == wider.columns


def test_a_try_goes_on_where_the_last_one_was_throttled() -> None:
    memory = Memory()
    memory.driver().keep(paths(1000))
    wider = replace(TABLE, columns=(*TABLE.columns, Column("c", "int")))
    kept = memory.driver(wider)
    for calls in (7, 14):
        memory.breaks_before = calls
        with pytest.raises(CatalogError, match="throttled"):
            kept.keep(paths(1000))
    memory.breaks_before = None
    kept.keep(paths(1000))
    assert memory.calls.count("alter_partitions") == 12, "ten, and two that were throttled"
    assert set(memory.described.values()) == {wider.columns}
    assert memory.tables["orders"].columns == wider.columns


def test_a_partition_that_is_refused_keeps_no_other_out() -> None:
    memory = Memory()
    memory.refuses = {"dt=150"}
    kept = memory.driver()
    for _ in range(2):
        with pytest.raises(CatalogError, match=r"^partition dt=150: too long: 1$"):
            kept.keep(paths(200))
    assert len(memory.described) == 199
    memory.calls.clear()
    with pytest.raises(CatalogError, match=r"^partition dt=150: "):
        kept.keep({"dt=new"})
    assert ("new",) in memory.described
    assert memory.calls == ["find", "partitions", "add_partitions", "add_partitions"]
    memory.refuses = set()
    kept.keep(set())
    assert len(memory.described) == 201


def test_many_partitions_that_are_refused_cost_few_calls_and_keep_no_other_out_for_long() -> None:
    memory = Memory()
    memory.refuses = {f"dt={number}" for number in range(100, 140)}
    kept = memory.driver()
    for _ in range(20):
        memory.calls.clear()
        with pytest.raises(CatalogError):
            kept.keep(paths(200))
        assert memory.calls.count("add_partitions") <= 40
    assert len(memory.described) == 160


def test_a_table_that_is_of_others_keeps_no_other_out() -> None:
    memory = Memory()
    memory.tables["orders"] = replace(TABLE, location="s3a://lake/others")
    memory.tables["orders_ro"] = replace(TABLE, name="orders_ro")
    kept = KeptTables(
        memory.opened, "lake", [TABLE, *(replace(TABLE, name=f"orders_{end}") for end in ("ro", "rt"))], field="f"
    )
    with pytest.raises(CatalogError, match=r"lake\.orders .* is that of s3a://lake/others"):
        kept.keep({"dt=1"})
    assert "orders_rt" in memory.tables
    assert memory.calls == ["find", "find", "partitions", "add_partitions", "find", "create", "add_partitions"]


def test_what_is_given_up_begins_no_further_call() -> None:
    memory = Memory()
    kept = memory.driver()
    kept.keep(paths(1))
    add, calls = memory.add_partitions, len(memory.calls)

    def slow(table: CatalogTable, paths: Sequence[str]) -> None:
        add(table, paths)
        kept.give_up()

    memory.add_partitions = slow  # type: ignore[method-assign]
    with pytest.raises(CatalogError, match="left to the next driver"):
        kept.keep(paths(1000))
    assert memory.calls[calls:] == ["add_partitions"]


def test_properties_of_others_are_no_reason_to_change_a_table() -> None:
    memory = Memory()
    mine = replace(TABLE, properties={"EXTERNAL": "TRUE"})
    memory.driver(mine).keep(paths(1))
    memory.tables["orders"] = replace(mine, properties={"EXTERNAL": "TRUE", "transient_lastDdlTime": "1"})
    memory.driver(mine).keep(paths(1))
    assert memory.calls == ["find", "partitions"]


@pytest.mark.parametrize(
    ("theirs", "message"),
    [
        (
            {"location": "s3a://lake/others"},
            r"lake\.orders .* is that of s3a://lake/others, not of s3a://lake/orders\.",
        ),
        ({"location": ""}, r"is that of no files, not of .* Give catalog\.hive\.table another name"),
        ({"partition_keys": ()}, r"is partitioned by nothing, and the files by dt string\. Drop it"),
    ],
)
def test_a_table_of_others_is_left_alone(theirs: Mapping[str, object], message: str) -> None:
    memory = Memory()
    other = replace(TABLE, **theirs)  # type: ignore[arg-type]
    memory.tables["orders"] = other
    with pytest.raises(CatalogError, match=message):
        memory.driver().keep(paths(1))
    assert (memory.tables["orders"], memory.calls) == (other, ["find"])
