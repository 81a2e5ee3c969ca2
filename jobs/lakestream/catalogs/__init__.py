"""Keeps tables in the catalogs where query engines look for them, beside the batches."""

from lakestream.catalogs.keeper import CatalogKeeper
from lakestream.catalogs.writers import Cataloged, keep_catalog

__all__ = ["CatalogKeeper", "Cataloged", "keep_catalog"]
