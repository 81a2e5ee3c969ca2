"""The files that committed batches of a writer consist of."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping

from lakestream import places
from lakestream.errors import SettingsError
from lakestream.log import ObstoreLogStore, committed_files, rejected_files
from lakestream.query.target import of_writer
from lakestream_api import LakeStream

logger = logging.getLogger(__name__)


def list_files(
    document: LakeStream, writer_name: str, environ: Mapping[str, str], *, quarantine: bool = False
) -> Iterator[str]:
    """Whole paths, in the order of the batches: of the table of JSON files or, if so asked, of the quarantine.

    Raises:
        InvalidDocumentError: there is no such writer.
        SettingsError: the files of the writer's table are not known by manifests; or as `Target.known_log`.
        CorruptLogError, StorageError, StorageUnavailableError: of the checkpoint.
    """
    if document.writer(writer_name).json_files is None and not quarantine:
        raise SettingsError(
            f"writer {writer_name}: the files of a Hudi table are known by its own timeline; read it as a Hudi table, "
            "or give --quarantine for the files of unusable records"
        )
    target = of_writer(document, writer_name, environ)
    if (log := target.known_log()) is None:
        checkpoint = document.spec.checkpoint
        logger.warning("no driver of writer %s has begun: it has no checkpoint at %s", writer_name, checkpoint)
        return
    root = (log / places.QUARANTINE).path if quarantine else target.table.path
    store = ObstoreLogStore.at(log)
    for batch in rejected_files(store) if quarantine else committed_files(store):
        for entry in batch.rejects if quarantine else batch.files:
            yield f"{root}/{entry.path}"
