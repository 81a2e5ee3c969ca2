"""The files that committed batches of a writer consist of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from lakestream import places
from lakestream.errors import SettingsError
from lakestream.log import ObstoreLogStore, committed_files, rejected_files
from lakestream.storage import LakePath, S3Settings
from lakestream_api import LakeStream


def list_files(
    document: LakeStream, writer_name: str, environ: Mapping[str, str], *, quarantine: bool = False
) -> Iterator[str]:
    """Whole paths, in the order of the batches: of the table of JSON files or, if so asked, of the quarantine.

    Raises:
        InvalidDocumentError: there is no such writer.
        SettingsError: the files of the writer's table are not known by manifests.
        CorruptLogError, StorageError, StorageUnavailableError: of the checkpoint.
    """
    writer = document.writer(writer_name)
    if writer.json_files is None and not quarantine:
        raise SettingsError(
            f"writer {writer_name}: the files of a Hudi table are known by its own timeline; read it as a Hudi table, "
            "or give --quarantine for the files of unusable records"
        )
    s3 = S3Settings.from_environment(environ, document.spec.source.kinesis.region)
    place = places.checkpoint_place(document, writer, s3)
    root = (place / places.QUARANTINE).path if quarantine else LakePath.parse(writer.output.path)
    log = ObstoreLogStore.at(place)
    for batch in rejected_files(log) if quarantine else committed_files(log):
        for entry in batch.rejects if quarantine else batch.files:
            yield f"{root}/{entry.path}"
