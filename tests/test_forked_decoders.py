"""The process that forks decoders starts once, whatever asks for it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

from lance_ops.maintenance.ingest.decoding.decoding_process import DecodingProcess
from tests.forked_decoders import DecoderTemplate


class CountingTemplate(DecoderTemplate):
    num_begun = 0

    def _begin(self) -> None:
        self.num_begun += 1
        super()._begin()


def test_threads_that_ask_at_once_share_one_template() -> None:
    template, together = CountingTemplate(), Barrier(4)

    def decode() -> int:
        together.wait()
        with DecodingProcess() as decoder:
            template.start(decoder)
            return decoder.num_started

    with ThreadPoolExecutor(4) as pool:
        assert [each.result() for each in [pool.submit(decode) for _ in range(4)]] == [1] * 4
    template.close()
    assert template.num_begun == 1
