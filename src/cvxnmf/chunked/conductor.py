"""Work that one worker of a Dask cluster conducts: it gives tasks to all of them, and what it finds stays with it.

So nothing of the size of the data comes to the process that asks, unless it is fetched. A conductor that is lost begins anew on
another worker, and one that nobody waits for any more stops.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from threading import Event
from typing import Any

from cvxnmf import validation
from cvxnmf.chunked.dask_connection import CLOSED, Connection
from cvxnmf.chunked.memory import Settings
from cvxnmf.chunked.tasks import Literal, Refusal

LOST = "The labels are on the workers of a Dask client that is closed; look at them while it is open, or partition anew."
#: Time between looks at what a conductor has said.
TOLD_SECONDS = 0.2

#: Told what is done, and the share of the whole.
Report = Callable[[str, float], Any]


class Conducted:
    """What a worker of a cluster found as a conductor: a record that is kept there and fetched field by field."""

    def __init__(self, connection: Connection, name: str, future: Any) -> None:
        self.connection, self.name, self.future = connection, name, future

    def fetch(self, field: str, *default: Any) -> Any:
        """A field of what the conductor found, in this process; the default, if there is one, where it has no such field."""
        if self.connection.client.status in CLOSED:
            raise ConnectionError(LOST)
        wanted = self.connection.submit(getattr, self.future, field, *default, key=f"{self.name}-{field}")
        return self.connection.gather([wanted])[0]


def conduct(
    connection: Connection, name: str, function: Callable[..., Any], arguments: Sequence[Any], report: Report
) -> Conducted:
    """Let a worker of the cluster call ``function(connection, report, *arguments)`` and keep what it returns.

    Progress is told here while it works; a sentence of refusal is raised here.
    """
    future = connection.submit(call_as_conductor, function, name, connection.settings, Literal(tuple(arguments)), key=name)
    ended = Event()
    future.add_done_callback(lambda _: ended.set())  # to wait for the future itself again and again would keep it in tracebacks
    try:
        told = 0
        for _ in connection.waits(lambda: ended.wait(TOLD_SECONDS)):
            told = _tell(connection.client.get_events(name), told, report)
        _tell(connection.client.get_events(name), told, report)
    except BaseException:
        future.release()  # or the traceback would keep it, and the conductor at work
        raise
    found = Conducted(connection, name, future)
    refusal = found.fetch("sentence", None)  # a refusal alone has one
    if refusal is not None:
        validation.refuse(refusal)
    return found


def _tell(events: Sequence[Any], told: int, report: Report) -> int:
    """Report what a conductor said after so many events; how many there are now."""
    for _, (stage, share) in events[told:]:
        report(stage, share)
    return len(events)


class ConductorConnection(Connection):
    """Connection of a conducting worker to its own cluster, on which work ends when nobody waits for it any more."""

    def __init__(self, client: Any, settings: Settings, worker: Any) -> None:
        super().__init__(client, False, settings)
        self._tasks, self._key = worker.state.tasks, worker.get_current_task()

    def gather(self, futures: Sequence[Any]) -> list[Any]:
        """The results of Dask futures for the conductor, unless its own task was given up."""
        task = self._tasks.get(self._key)
        if task is None or task.state == "cancelled":
            raise RuntimeError("Nobody waits for this work any more.")
        return super().gather(futures)


def call_as_conductor(function: Callable[..., Any], name: str, settings: Settings, arguments: Literal) -> Any:
    """Task: call a function with a connection to this worker's cluster and a report that whoever asked hears of."""
    distributed: Any = import_module("distributed")
    worker = distributed.get_worker()

    def report(stage: str, share: float) -> None:
        worker.log_event(name, (stage, share))

    with distributed.worker_client() as client:
        connection = ConductorConnection(client, settings, worker)
        try:
            return function(connection, report, *arguments.value)
        except ValueError as error:
            return Refusal(str(error))
        finally:
            connection.close()
