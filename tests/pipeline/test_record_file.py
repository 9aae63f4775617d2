"""Records that several processes write: every entry is kept, nothing else stays behind."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from tilec.ir.expr import Const
from tilec.ir.plan import Variant
from tilec.pipeline.record_file import read_record, update_record
from tilec.scheduler.tuning.decision import Decision
from tilec.scheduler.tuning.record import Entry, Record, Trial
from tilec.scheduler.tuning.signature import Signature

TRIAL = Trial((Decision({}, (Variant(Const(True), ("dram",), {}, {}, ""),)),), 1)
ENTRY = Entry(Signature("abc", "Relu", (), ()), {"device": "d"}, (TRIAL,), 0)

ADD = """
import sys
from dataclasses import replace
from pathlib import Path
from pipeline.test_record_file import ENTRY
from tilec.pipeline.record_file import update_record
for number in range(12):
    entry = replace(ENTRY, setting={"device": f"{sys.argv[2]} {number}"})
    update_record(Path(sys.argv[1]), lambda record: record.merged(entry))
"""


def test_processes_lose_nothing_of_each_other(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", ADD, str(tmp_path / "r.json")]
    running = [subprocess.Popen([*command, name], env=environment) for name in "abc"]
    assert [process.wait(timeout=60) for process in running] == [0, 0, 0]
    assert len(read_record(tmp_path / "r.json").entries) == 36
    assert [path.name for path in tmp_path.iterdir()] == ["r.json"]


def test_a_record_is_made_where_there_is_none_and_touched_only_for_a_change(tmp_path: Path) -> None:
    file = tmp_path / "a" / "r.json"
    assert update_record(file, lambda record: record) == Record() == read_record(file)
    changed = update_record(file, lambda record: record.merged(ENTRY))
    assert changed == read_record(file)
    before = file.stat().st_ino
    later = replace(ENTRY, trials=(TRIAL, TRIAL))
    assert update_record(file, lambda record: record.merged(later)) == changed
    assert file.stat().st_ino == before
