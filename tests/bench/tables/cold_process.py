"""A contender that starts a new Python process for each question: it imports, opens, does one thing, and ends."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.bench.contenders import MODULES
from tests.bench.tables.cases import case_named
from tests.bench.tables.tables import APPENDED
from tests.bench.tables.verbs import TAKEN, Verb

__all__ = ["ColdProcess", "script_of"]

# What a user's script says, apart from the import and the table's URI.
_SCRIPTS = {
    "scan": "result = lance.dataset(uri).to_table()",
    "filter": "result = lance.dataset(uri).to_table(filter='bucket = 7')",
    "take": f"result = lance.dataset(uri).take(list(range(0, {10 * TAKEN}, 10)))",
    "append": f"""
import pyarrow as pa
rows = pa.table({{
    'id': range(10**9, 10**9 + {APPENDED}),
    'bucket': pa.array([7] * {APPENDED}, pa.int32()),
    'value': [0.5] * {APPENDED},
    'name': ['customer'] * {APPENDED},
}})
result = lance.write_dataset(rows, uri, mode='append')""",
}
_CHECK = """
from pathlib import Path
from tests.bench.answers import write_answer
from tests.bench.tables.cases import case_named
write_answer(Path({root!r}), {name!r}, case_named({case!r}).verb.answer(lance, uri, result))
"""


def script_of(verb: Verb, contender: str, uri: str) -> str:
    """Return a script that a user could have written. It leaves its answer in `result`."""
    return f"import {MODULES[contender]} as lance\nuri = {uri!r}\n{_SCRIPTS[verb.name]}\n"


@dataclass(frozen=True)
class ColdProcess:
    """Answers as a `Worker` does, but keeps no process."""

    root: Path
    name: str

    def ask(self, **question: Any) -> dict[str, Any]:
        """Run one script. The times are those of its whole process, from its start to its end."""
        script = script_of(case_named(question["case"]).verb, self.name, str(self.root / question["files"]))
        if question["check"]:
            script += _CHECK.format(root=str(self.root), name=self.name, case=question["case"])
        os.sync()  # as `measured` does before an operation
        start = time.perf_counter()
        process = subprocess.Popen(
            [sys.executable, "-c", script],
            stderr=subprocess.PIPE,
            text=True,
            env=self._environment(),
        )
        assert process.stderr
        with process.stderr:
            said = process.stderr.read()
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            return {
                "error": said.strip().rpartition("\n")[2].replace(f"{self.root}/", "") or f"exit {process.returncode}"
            }
        if question["check"]:
            return {}
        cpu_seconds = usage.ru_utime + usage.ru_stime
        return {"seconds": seconds, "cpu_seconds": cpu_seconds, "peak_bytes": 1024 * usage.ru_maxrss}

    def _environment(self) -> dict[str, str]:
        """Keep the bytecode of both contenders, as their installation does; the first round, not counted, writes it."""
        kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        return kept | {"LANCE_LOG": "error", "PYTHONPYCACHEPREFIX": str(self.root / "bytecode")}
