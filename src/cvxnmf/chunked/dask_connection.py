"""The connection to a Dask cluster: bounded waits, quiet logs, and a sentence for everything that can go wrong."""

from __future__ import annotations

import logging
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from cvxnmf import validation
from cvxnmf.chunked.memory import Settings

#: States of a client that will not work again.
CLOSED = ("closed", "closing")
GONE = "The Dask scheduler is gone, and with its workers the factors so far; start the cluster anew and try again."
MISSING = "Working on a Dask cluster needs dask and distributed; install them with: pip install 'dask[array]' distributed"


def open_connection(client: Any, settings: Settings) -> Connection | None:
    """Connect to a client, an address, or the current client; None where nothing is asked for and there is no client."""
    if client is None and "distributed" not in sys.modules:
        return None
    try:
        distributed: Any = import_module("distributed")
    except ImportError:
        raise ImportError(MISSING) from None
    if client is None:
        try:
            return Connection(distributed.default_client(), False, settings)
        except ValueError:
            return None
    if isinstance(client, distributed.Client):
        if client.asynchronous:
            validation.refuse("The Dask client is asynchronous; give a synchronous one, Client(address).")
        if client.status in CLOSED:
            raise ConnectionError("The Dask client is closed; open a new one, Client(address).")
        return Connection(client, False, settings)
    if not isinstance(client, str):
        validation.refuse(f"client must be a distributed.Client or the address of a scheduler, not {client!r}.")
    return Connection(_client_at(client, distributed.Client, settings.answer_seconds), True, settings)


def _client_at(address: str, kind: Any, seconds: float) -> Any:
    """A new client of the Dask scheduler at an address, or a sentence after a bounded wait."""
    levels, client = _silence_logs(), kind.__new__(kind)
    try:
        client.__init__(address, timeout=seconds, set_as_default=False)
        return client
    except Exception as error:  # whatever answers there may be no scheduler, and say anything
        client.status = "closed"  # or it would wait for the scheduler once more when it is forgotten
        if isinstance(error, ValueError) and not isinstance(error, OSError):
            reason = " ".join(str(error).split()).rstrip(".")
            validation.refuse(f"{address!r} is not the address of a Dask scheduler ({reason}); it looks like tcp://host:8786.")
        raise ConnectionError(
            f"No Dask scheduler answers at {address} within {seconds} seconds; check the address, or start one there with: "
            "dask scheduler"
        ) from None
    finally:
        _restore_logs(levels)


class Connection:
    """Connection to a Dask cluster: a synchronous client, `owned` if it is ours to close; its logs are quiet until then."""

    def __init__(self, client: Any, owned: bool, settings: Settings) -> None:
        self.client, self.settings = client, settings
        self.owned, self._levels = owned, _silence_logs()

    def close(self) -> None:
        """Close the Dask client if it is ours and restore its logs; a client that lost its scheduler would only repeat that."""
        alive = self.client.status == "running"
        if self.owned:
            self.client.close()
        if alive or not self.owned:
            _restore_logs(self._levels)

    def workers(self) -> dict[str, int]:
        """Threads of each Dask worker, in the order of their names; waits a little for the first one."""
        until = time.monotonic() + self.settings.answer_seconds
        with _readable_errors(self.client):
            while not (found := self.client.nthreads()):
                if time.monotonic() > until:
                    raise ConnectionError("The Dask cluster has no workers; start some with: dask worker ADDRESS")
                time.sleep(0.1)
        return {worker: int(found[worker]) for worker in sorted(found)}

    def submit(self, function: Callable[..., Any], *arguments: Any, key: str, worker: str | None = None) -> Any:
        """A future of a task on the Dask cluster, at the worker if one is named and still there."""
        with self._sending(worker) as place:
            return self.client.submit(function, *arguments, key=key, pure=False, **place)

    def compute(self, function: Callable[..., Any], *arguments: Any, worker: str | None, key: str) -> Any:
        """A future of a function of delayed Dask pieces, at the worker if one is named and still there."""
        task = import_module("dask").delayed(function, pure=False)(*arguments, dask_key_name=key)
        with self._sending(worker) as place:
            return self.client.compute(task, **place)

    @contextmanager
    def _sending(self, worker: str | None) -> Iterator[dict[str, Any]]:
        """Options that place a Dask task; errors become sentences, and warnings of large tasks, which carry rows, are hidden."""
        with _readable_errors(self.client), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield {} if worker is None else {"workers": [worker], "allow_other_workers": True}

    def gather(self, futures: Sequence[Any]) -> list[Any]:
        """The results of Dask futures, waited for as long as the cluster is alive."""
        for _ in self.waits(lambda: self._are_done(futures)):
            pass
        with _readable_errors(self.client):
            return list(self.client.gather(list(futures)))

    def waits(self, is_done: Callable[[], bool]) -> Iterator[None]:
        """Ask whether something is done, which takes a while each time, and yield until it is or the Dask cluster is dead."""
        alone: float | None = None
        while not is_done():
            if self.client.status in CLOSED:
                raise ConnectionError(GONE)
            now, patience = time.monotonic(), self.settings.workerless_seconds
            with _readable_errors(self.client):
                alone = None if self.client.nthreads() else now if alone is None else alone
            if alone is not None and now - alone > patience:
                raise ConnectionError(f"The Dask cluster has had no workers for {patience} seconds; start some and try again.")
            yield

    def _are_done(self, futures: Sequence[Any]) -> bool:
        """Whether Dask futures are done after a short wait."""
        with _readable_errors(self.client), self.client.as_current():
            try:
                import_module("distributed").wait(list(futures), timeout=self.settings.poll_seconds)
                return True
            except TimeoutError:
                return False


@contextmanager
def _readable_errors(client: Any) -> Iterator[None]:
    """Turn the errors of a broken connection to a Dask cluster into one sentence."""
    distributed: Any = import_module("distributed")
    lost = (distributed.CancelledError, OSError)
    try:
        yield
    except ConnectionError:  # our own sentences
        raise
    except distributed.scheduler.KilledWorker:
        raise ConnectionError(
            "Dask workers died again and again on the same task; give them more memory, or make the chunks of A smaller."
        ) from None
    except Exception as error:  # a client that was closed on the way raises anything
        if client.status in CLOSED:
            raise ConnectionError(GONE) from None
        if not isinstance(error, lost):
            raise
        raise ConnectionError("The Dask cluster lost the data or its scheduler; start the cluster anew and try again.") from None


def _silence_logs() -> dict[str, int]:
    """Silence the loggers of Dask's distributed below critical, and return their levels before."""
    names = ["distributed", *(name for name in logging.root.manager.loggerDict if name.startswith("distributed."))]
    before = {name: logging.getLogger(name).level for name in names}
    for name in names:
        logging.getLogger(name).setLevel(logging.CRITICAL)
    return before


def _restore_logs(levels: dict[str, int]) -> None:
    """Give the loggers of Dask's distributed their levels back."""
    for name, level in levels.items():
        logging.getLogger(name).setLevel(level)
