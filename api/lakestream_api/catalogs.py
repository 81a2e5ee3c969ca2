"""Where query engines look for a table: the AWS Glue Data Catalog."""

import re
from typing import Annotated

from pydantic import AfterValidator, WithJsonSchema

from lakestream_api.base import ApiModel
from lakestream_api.cel import rule, text_schema

_MOST = 128
_NAME = re.compile(rf"[a-z0-9_]{{1,{_MOST}}}")
_NAME_RULE = f"use at most {_MOST} lower-case letters, digits and '_': Athena takes no others"


def _name(name: str) -> str:
    if _NAME.fullmatch(name) is None:
        raise ValueError(f"{name!r} cannot be a name in a catalog; {_NAME_RULE}")
    return name


CatalogName = Annotated[
    str,
    AfterValidator(_name),
    WithJsonSchema(text_schema(rule(f"self.matches('^{_NAME.pattern}$')", _NAME_RULE), most=_MOST)),
]


class GlueTable(ApiModel):
    """A table of the AWS Glue Data Catalog, in the driver's account and Region."""

    database: CatalogName
    """Database of the catalog. It must exist."""

    table: CatalogName
    """Name of the table. A MERGE_ON_READ table is there as `<table>_ro` (read-optimized: what is
    compacted) and `<table>_rt` (all rows) besides."""


class Catalog(ApiModel):
    """Where query engines find the table. Kept beside the batches, none of which it fails."""

    glue: GlueTable
    """Keep the table in the AWS Glue Data Catalog, for Athena, EMR and Redshift Spectrum."""
