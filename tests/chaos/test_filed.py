"""Files that a writer is asked for hold what the audit takes them to."""

from __future__ import annotations

import gzip
from pathlib import Path
from random import Random

import pytest

from chaos.events import Fate
from chaos.filed import write_file
from chaos.setting import Sink


@pytest.mark.parametrize("name", ["1.jsonl", "2.jsonl.gz"])
def test_each_line_is_found_at_its_place(tmp_path: Path, name: str) -> None:
    file = tmp_path / "files" / name
    sent = write_file(file, Random(8), 400, Sink.JSON)
    data = gzip.decompress(file.read_bytes()) if name.endswith(".gz") else file.read_bytes()
    assert len(sent) == 400 == data.count(b"\n")
    assert all(data[place:].split(b"\n", 1)[0] == one.data for (_, place, _), one in sent.items())
    assert {where[0] for where in sent} == {str(file)}
    assert {one.fate for one in sent.values()} == set(Fate)


def test_no_two_files_have_a_thing_in_common(tmp_path: Path) -> None:
    files = [write_file(tmp_path / f"{number}.jsonl", Random(7), 50, Sink.JSON) for number in range(2)]
    one, other = ({sent.partition_key for sent in file.values()} for file in files)
    assert len(one) == 50
    assert not one & other
