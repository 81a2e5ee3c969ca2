"""The catalog of one writer's table, as its document says."""

from __future__ import annotations

from dataclasses import dataclass

from lakestream.catalogs.glue import GlueCatalog, glue_client
from lakestream.catalogs.keeper import CatalogKeeper
from lakestream.catalogs.tables import CatalogTable, hudi_tables, json_table
from lakestream.model import ServiceStatus
from lakestream.sinks.contract import Sink
from lakestream.storage import S3Settings
from lakestream_api import HudiOutput, JsonOutput


def keep_catalog(output: HudiOutput | JsonOutput, sink: Sink, s3: S3Settings) -> CatalogKeeper | None:
    """Begin to keep a writer's table in its catalog; None if the document names none.

    Args:
        output: of the writer.
        sink: of the writer, prepared.
        s3: has the Region.
    """
    if output.catalog is None:
        return None
    glue = output.catalog.glue
    catalog = GlueCatalog(glue_client(s3.region), glue.database, tables_of(output, glue.table, sink))
    return CatalogKeeper(catalog, sink.partitions)


def tables_of(output: HudiOutput | JsonOutput, name: str, sink: Sink) -> tuple[CatalogTable, ...]:
    """The tables by which engines query what a sink writes."""
    match output:
        case HudiOutput():
            return hudi_tables(name, output.path, output.table_type, sink.columns, output.partition_by)
        case JsonOutput():
            return (json_table(name, output.path, sink.columns, output.partition_by),)


@dataclass(frozen=True, slots=True)
class Cataloged:
    """What a table says of itself, and how its catalog is kept."""

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
