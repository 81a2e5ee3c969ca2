"""The catalog of one writer's table, as its document says."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial

from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from lakestream.catalogs.glue import GlueCatalog, glue_client
from lakestream.catalogs.hive import hive_metastore
from lakestream.catalogs.keeper import CatalogKeeper
from lakestream.catalogs.metastore import KeptTables
from lakestream.catalogs.tables import CatalogTable, JsonSerde, hudi_tables, json_table
from lakestream.model import ServiceStatus
from lakestream.sinks.contract import Sink
from lakestream.storage import LakePath, S3Settings
from lakestream_api import Catalog, HudiOutput, JsonOutput


def keep_catalog(
    output: HudiOutput | JsonOutput, sink: Sink, spark: SparkSession, s3: S3Settings
) -> CatalogKeeper | None:
    """Begin to keep a writer's table in its catalog; None if the document names none.

    Args:
        output: of the writer.
        sink: of the writer, prepared.
        spark: has the client of Hive's metastore.
        s3: has the Region.
    """
    if output.catalog is None:
        return None
    return CatalogKeeper(_catalog(output, output.catalog, sink, spark, s3.region), sink.partitions)


def _catalog(
    output: HudiOutput | JsonOutput, named: Catalog, sink: Sink, spark: SparkSession, region: str
) -> KeptTables:
    location = LakePath.parse(output.path).uri
    # Glue's engines do not know Hadoop's s3a; and whoever writes s3 to Hive has engines that know that.
    if named.glue is not None or output.path.startswith("s3://"):
        location = location.replace("s3a://", "s3://", 1)
    if named.glue is not None:
        glue = GlueCatalog(glue_client(region), named.glue.database)
        tables = tables_of(output, named.glue.table, location, sink.columns, JsonSerde.OPENX)
        return KeptTables(lambda: nullcontext(glue), named.glue.database, tables, field="catalog.glue.table")
    hive = named.hive
    assert hive is not None  # the model: one of the two
    tables = tables_of(output, hive.table, location, sink.columns, JsonSerde.HCATALOG)
    opened = partial(hive_metastore, spark, hive.uri, hive.database)
    return KeptTables(opened, hive.database, tables, field="catalog.hive.table")


def tables_of(
    output: HudiOutput | JsonOutput, name: str, location: str, columns: StructType, serde: JsonSerde
) -> tuple[CatalogTable, ...]:
    """The tables by which engines query what a sink writes."""
    match output:
        case HudiOutput():
            return hudi_tables(name, location, output.table_type, columns, output.partition_by)
        case JsonOutput():
            return (json_table(name, location, columns, output.partition_by, serde),)


@dataclass(frozen=True, slots=True)
class Cataloged:
    """A table beside its batches, and how its catalog is kept."""

    sink: Sink
    keeper: CatalogKeeper | None

    @property
    def services(self) -> tuple[ServiceStatus, ...]:
        """Those of the sink, and the keeping of the catalog."""
        return self.sink.services if self.keeper is None else (*self.sink.services, self.keeper.status)

    @property
    def remembered_deletes(self) -> int:
        """The sink's."""
        return self.sink.remembered_deletes

    @property
    def largest_file(self) -> int:
        """The sink's."""
        return self.sink.largest_file

    def tend(self) -> None:
        """The sink; the keeper tends the catalog by itself."""
        self.sink.tend()
