"""Where query engines look for a table: the AWS Glue Data Catalog, or a Hive metastore."""

import re
from typing import Annotated, Self

from pydantic import AfterValidator, ConfigDict, WithJsonSchema, model_validator

from lakestream_api.base import ApiModel
from lakestream_api.cel import rule, rules, text_schema

_MOST = 128
_NAME = re.compile(rf"[a-z0-9_]{{1,{_MOST}}}")
_NAME_RULE = f"use at most {_MOST} lower-case letters, digits and '_'; not all engines take others"


def _name(name: str) -> str:
    if _NAME.fullmatch(name) is None:
        raise ValueError(f"{name!r} cannot be a name in a catalog; {_NAME_RULE}")
    return name


CatalogName = Annotated[
    str,
    AfterValidator(_name),
    WithJsonSchema(text_schema(rule(f"self.matches('^{_NAME.pattern}$')", _NAME_RULE), most=_MOST)),
]


_URI_MOST = 300
_URI = re.compile(r"thrift://[A-Za-z0-9._-]+:[0-9]{1,5}")
_URI_RULE = "write thrift://host:port"


def _uri(uri: str) -> str:
    if _URI.fullmatch(uri) is None:
        raise ValueError(f"{uri!r} is not the address of a Hive metastore; {_URI_RULE}")
    return uri


ThriftUri = Annotated[
    str,
    AfterValidator(_uri),
    WithJsonSchema(text_schema(rule(f"self.matches('^{_URI.pattern}$')", _URI_RULE), most=_URI_MOST)),
]

_ONE_RULE = "needs one of glue and hive, and takes no two"


class GlueTable(ApiModel):
    """A table of the AWS Glue Data Catalog, in the driver's account, and the Region in which it asks S3."""

    database: CatalogName
    """Database of the catalog. It must exist."""

    table: CatalogName
    """Name of the table. A MERGE_ON_READ table is there as `<table>_ro` (read-optimized: what is
    compacted) and `<table>_rt` (all rows) besides."""


class HiveTable(ApiModel):
    """A table of a Hive metastore."""

    uri: ThriftUri
    """Where the metastore answers, as in `thrift://hive-metastore.lake:9083`. Plain Thrift: neither
    TLS nor Kerberos."""

    database: CatalogName
    """Database of the metastore. It must exist."""

    table: CatalogName
    """Name of the table. A MERGE_ON_READ table is there as `<table>_ro` (read-optimized: what is
    compacted) and `<table>_rt` (all rows) besides."""


class Catalog(ApiModel):
    """Where query engines find the table: exactly one of `glue` and `hive`. Kept beside the batches, none of which it
    fails."""

    model_config = ConfigDict(json_schema_extra=rules(rule("has(self.glue) != has(self.hive)", _ONE_RULE)))

    glue: GlueTable | None = None
    """Keep the table in the AWS Glue Data Catalog, for Athena, EMR and Redshift Spectrum."""

    hive: HiveTable | None = None
    """Keep the table in a Hive metastore, for Spark and Trino."""

    @model_validator(mode="after")
    def _is_one(self) -> Self:
        if (self.glue is None) == (self.hive is None):
            raise ValueError(_ONE_RULE)
        return self

    def tables(self, *, merge_on_read: bool) -> tuple[str, ...]:
        """All tables that are kept in it, each by its full name: two that are the same are one table."""
        if self.glue is not None:
            place, table = self.glue.database, self.glue.table
        else:
            assert self.hive is not None  # _is_one
            place, table = f"{self.hive.uri.lower()}/{self.hive.database}", self.hive.table
        return tuple(f"{place}.{table}{suffix}" for suffix in (("", "_ro", "_rt") if merge_on_read else ("",)))
