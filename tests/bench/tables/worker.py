"""One contender's process: it keeps nothing open between questions, and has all cores."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

from lance_ops.kernels import load_kernels
from tests.bench.answers import write_answer
from tests.bench.contenders import MODULES
from tests.bench.conversation import Answering, serve
from tests.bench.measuring import give_back_memory, measured
from tests.bench.tables.cases import case_named


def _answering(root: str, name: str) -> Answering:
    module = importlib.import_module(MODULES[name])
    if name == "ours":
        load_kernels()  # as any process that goes on has; `cold` cases measure those that begin

    def answer_to(question: dict[str, Any]) -> dict[str, Any]:
        verb, uri = case_named(question["case"]).verb, str(Path(root) / question["files"])
        prepared = verb.prepare(module, uri, question["seed"])
        if not question["check"]:
            return measured(lambda: verb.run(module, uri, prepared))
        write_answer(Path(root), name, verb.answer(module, uri, verb.run(module, uri, prepared)))
        give_back_memory()
        return {}

    return answer_to


if __name__ == "__main__":
    serve(_answering, root=Path(sys.argv[1]))
