"""The workers of a cluster that can run cases: which there are, how many cases they run at once, which are silent."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any, Final

from mluops_cli.execution.cluster.scheduler import Workers
from schemas.errors import InputError, UnavailableError

_SILENT: Final = 60.0  # seconds without a heartbeat to the scheduler after which an idle worker is given up
_REPLACEMENT: Final = 30.0  # seconds to wait for a worker when all are lost


@dataclass(slots=True)
class _Member:
    """A usable worker. capacity: cases it runs at once; last_seen by the scheduler's clock, changed by ours."""

    capacity: int
    last_seen: float
    changed: float


@dataclass
class Members:
    """What the scheduler has said of its workers; resource is what a case takes of a worker."""

    resource: dict[str, float]
    usable: dict[str, _Member] = field(default_factory=dict)  # by address
    names: dict[str, str] = field(default_factory=dict)  # by address, of lost workers too
    refused: dict[str, str] = field(default_factory=dict)  # address -> why it can't be used
    manned: float = field(default_factory=time.monotonic)  # when there last was a usable worker

    def update(self, workers: Workers) -> None:
        """Take over the scheduler's present list."""
        now = time.monotonic()
        self.names |= {address: each["name"] for address, each in workers.items()}
        usable = {}
        for address, each in workers.items():
            capacity = self._capacity_of(each)
            if not capacity or address in self.refused:
                continue
            known = self.usable.get(address)
            if known is not None and known.last_seen == each["last_seen"]:
                usable[address] = known
            else:
                usable[address] = _Member(capacity, each["last_seen"], now)
        self.usable = usable
        self.manned = now if usable else self.manned

    def _capacity_of(self, worker: dict[str, Any]) -> int:
        capacity = [int(worker["nthreads"])]
        capacity += [int(worker["resources"].get(name, 0) // amount) for name, amount in self.resource.items()]
        return min(capacity)

    @property
    def capacity(self) -> int:
        """How many cases the usable workers run at once."""
        return sum(member.capacity for member in self.usable.values())

    def demand(self, workers: Workers) -> None:
        """An error at once, not a wait, where none of the scheduler's workers is usable."""
        if self.usable:
            return
        if not workers:
            raise UnavailableError("no worker is connected to the scheduler")
        have = "; ".join(sorted({_listed(each["resources"]) for each in workers.values()}))
        wanted = _listed(self.resource)
        raise InputError(f"--resource {wanted}: no worker has it; the {len(workers)} workers have {have}")

    def refuse(self, address: str, reason: str) -> None:
        """Never use this worker again."""
        self.refused[address] = reason
        self.usable.pop(address, None)

    def name(self, address: str) -> str:
        """What the worker is called, its address where nobody gave it a name."""
        return self.names.get(address, address)

    def silent(self) -> list[str]:
        """Addresses of workers that have sent no heartbeat for long."""
        limit = time.monotonic() - _SILENT
        return [address for address, member in self.usable.items() if member.changed < limit]

    def gone(self) -> str:
        """Why no worker is to be waited for any longer, empty where there is one, or one may still come."""
        if self.usable or time.monotonic() - self.manned < _REPLACEMENT:
            return ""
        why = next(iter(self.refused.values()), "")
        return f"no worker of the fleet is left and none came within {_REPLACEMENT:g} s{': ' if why else ''}{why}"


def _listed(resources: dict[str, float]) -> str:
    return ", ".join(f"{name}={amount:g}" for name, amount in resources.items()) or "none"
