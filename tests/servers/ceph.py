"""Ceph for tests, on 127.0.0.1: one monitor, one object store in memory, and the gateway for S3's protocol.

Debian's packages are unpacked into `.cache`, not installed: nothing outside of the checkout changes.
"""

from __future__ import annotations

import os
import subprocess
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.processes import free_port, running
from tests.s3_server import ACCESS_KEY, SECRET_KEY, S3Server

REPOSITORY = Path(__file__).parents[2]
UNPACKED = REPOSITORY / ".cache" / "ceph"
PACKAGES = ("ceph-mon", "ceph-osd", "radosgw", "ceph-common")
_START_SECONDS = 120


@contextmanager
def ceph_server(folder: Path) -> Iterator[S3Server]:
    """Run a cluster that keeps its files in `folder` and its objects in memory, with one user."""
    cluster = _Cluster(_unpacked(), folder, free_port(), free_port())
    with ExitStack() as daemons:
        cluster.make_monitor()
        daemons.enter_context(cluster.daemon(cluster.monitor_port, "ceph-mon", "-i", "a"))
        osd = str(uuid.uuid4())
        cluster.ceph("osd", "new", osd)
        cluster.run("ceph-osd", "-i", "0", "--mkfs", "--osd-uuid", osd)
        daemons.enter_context(cluster.daemon(None, "ceph-osd", "-i", "0"))
        cluster.wait_for_osd()
        daemons.enter_context(cluster.daemon(cluster.gateway_port, "radosgw", "-n", "client.gateway"))
        keys = (f"--access-key={ACCESS_KEY}", f"--secret-key={SECRET_KEY}")
        cluster.run("radosgw-admin", "user", "create", "--uid=test", "--display-name=test", *keys)
        yield S3Server(f"http://127.0.0.1:{cluster.gateway_port}")


@dataclass(frozen=True)
class _Cluster:
    programs: Path
    folder: Path
    monitor_port: int
    gateway_port: int

    def make_monitor(self) -> None:
        cluster_id = str(uuid.uuid4())
        address = f"[v1:127.0.0.1:{self.monitor_port}]"
        libraries = self.programs / "usr" / "lib" / f"{os.uname().machine}-linux-gnu"
        settings = {
            "fsid": cluster_id,
            "mon host": address,
            "public addr": "127.0.0.1",
            **dict.fromkeys(("auth cluster required", "auth service required", "auth client required"), "none"),
            **dict.fromkeys(("osd pool default size", "osd pool default min size", "osd pool default pg num"), "1"),
            "osd pool default pgp num": "1",
            "osd crush chooseleaf type": "0",
            "mon allow pool size one": "true",
            "mon max pg per osd": "1000",
            "plugin dir": f"{libraries}/ceph",
            "erasure code dir": f"{libraries}/ceph/erasure-code",
            "osd class dir": f"{libraries}/rados-classes",
            "osd objectstore": "memstore",
            "memstore device bytes": str(1 << 30),
            "rgw frontends": f"beast endpoint=127.0.0.1:{self.gateway_port}",
            "run dir": str(self.folder),
            "admin socket": "",
            "pid file": "",
            "log file": f"{self.folder}/$name.log",
            "mon cluster log file": f"{self.folder}/cluster.log",
            "mon data": f"{self.folder}/mon",
            "osd data": f"{self.folder}/osd",
        }
        for name in ("mon", "osd"):
            (self.folder / name).mkdir()
        lines = [f"{name} = {value}" for name, value in settings.items()]
        (self.folder / "ceph.conf").write_text("\n".join(["[global]", *lines, ""]))
        monmap = f"{self.folder}/monmap"
        self.run("monmaptool", "--create", "--fsid", cluster_id, "--addv", "a", address, monmap)
        self.run("ceph-mon", "--mkfs", "-i", "a", "--monmap", monmap)

    def wait_for_osd(self) -> None:
        deadline = time.monotonic() + _START_SECONDS
        while "1 osds: 1 up" not in self.ceph("-s", check=False):
            assert time.monotonic() < deadline, "Ceph's object store did not come up"
            time.sleep(0.5)

    def daemon(self, port: int | None, *command: str) -> AbstractContextManager[None]:
        return running(["env", *self._settings(), *self._located(command), "-f"], port)

    def ceph(self, *command: str, check: bool = True) -> str:
        """Run the client of that name, a Python program of Debian's own Python."""
        modules = self.programs / "usr" / "lib" / "python3" / "dist-packages"
        python = [f"PYTHONPATH={modules}", "/usr/bin/python3"]
        return self._output(["env", *self._settings(), *python, *self._located(("ceph", *command))], check)

    def run(self, *command: str) -> str:
        return self._output(["env", *self._settings(), *self._located(command)])

    def _output(self, command: Sequence[str], check: bool = True) -> str:
        done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=_START_SECONDS)
        assert done.returncode == 0 or not check, f"{command}: {done.stderr}"
        return done.stdout

    def _located(self, command: Sequence[str]) -> list[str]:
        program, *arguments = command
        return [f"{self.programs}/usr/bin/{program}", *arguments]

    def _settings(self) -> list[str]:
        machine = f"{os.uname().machine}-linux-gnu"
        places = (f"usr/lib/{machine}", f"usr/lib/{machine}/ceph", f"lib/{machine}")
        libraries = os.pathsep.join(str(self.programs / place) for place in places)
        return [f"LD_LIBRARY_PATH={libraries}", f"CEPH_CONF={self.folder}/ceph.conf"]


def _unpacked() -> Path:
    """Return the folder of the unpacked packages, fetched by apt if they are not there; skip where apt cannot."""
    if not UNPACKED.exists():
        making = UNPACKED.with_name("ceph.making")
        archives = making / "archives"
        (archives / "partial").mkdir(parents=True, exist_ok=True)
        fetch = ["install", "-y", "--download-only", "--no-install-recommends", f"-oDir::Cache::archives={archives}"]
        try:
            subprocess.run(["apt-get", "update"], capture_output=True, check=False)
            subprocess.run(["apt-get", *fetch, *PACKAGES], capture_output=True, check=True)
        except (OSError, subprocess.CalledProcessError) as error:
            pytest.skip(f"apt-get cannot fetch Ceph: {error}")
        for package in archives.glob("*.deb"):
            subprocess.run(["dpkg", "-x", str(package), str(making)], check=True)
            package.unlink()
        making.rename(UNPACKED)
    return UNPACKED
