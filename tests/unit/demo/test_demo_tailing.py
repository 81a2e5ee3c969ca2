from __future__ import annotations

from pathlib import Path

from lakestream_demo.tailing import LineTail


def test_each_line_is_seen_once_and_only_when_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "progress.jsonl"
    tail = LineTail(path)
    assert tail.new_lines() == []
    with path.open("ab", buffering=0) as file:
        file.write(b'{"batch": 0}\n{"batch"')
        assert tail.new_lines() == [b'{"batch": 0}']
        assert tail.new_lines() == []
        file.write(b': 1}\n{"batch": 2}\n')
        assert tail.new_lines() == [b'{"batch": 1}', b'{"batch": 2}']
    assert tail.new_lines() == []
