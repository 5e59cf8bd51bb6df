"""The loop that tells hooks of jobs. It only reads what others write, so it delays nobody."""

from __future__ import annotations

import contextlib
import logging
import queue
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from job_runner.protocol import layout, times

from .. import logs
from ..domain.errors import Damaged, JobsError, NotFound
from ..domain.notification import GIVEN_UP, PENDING, SENT, HookNotification
from ..exchange import FileExchange, Request
from ..exchange.stamps import stamp_of
from .events import due_events, next_limit
from .facts import JobFacts, read_facts
from .hooks import Hook
from .message import message_of
from .outbox import Key, Outbox, is_owed
from .sending import Senders, TryResult

LOOK_INTERVAL = 0.5
"""Seconds between two looks at the jobs of which hooks may have to be told."""
NETWORK_LOOK_INTERVAL = 2.0
"""The same on a network file system."""
INTERVAL_PER_JOB = 0.002
"""The same for each of these jobs: many of them cost no more than a few."""
DELIVERY_PATIENCE = 10.0
"""Seconds after an end for which it is not told yet, so that the result's path can be told, too."""
MAX_DELAY = 900.0
"""Seconds between two tries at most."""
RETRY_INTERVAL = 30.0
"""Seconds before a job is looked at again whose documents could not be written."""
_log = logging.getLogger(__name__)

HookList = tuple[Hook, ...]


@dataclass
class _Owed:
    """A job of which hooks may have to be told. Times are monotonic, if not said otherwise.

    `stamp` is that of what was read last, and `checked_at` when it was compared. `look_at` is when
    something is due that only time brings. `ended_at` is when its end was seen, and `paused_until`
    when to go on after an error. `due_at` has the next tries, and `under_way` what a thread has.
    `was_ours`: the outbox was read, and no other notifier had it since. `warning`: the last one.
    """

    outbox: Outbox
    was_ours: bool = False
    stamp: object = None
    checked_at: float = float("-inf")
    hooks: HookList | None = None
    look_at: float | None = None
    ended_at: float | None = None
    paused_until: float = 0.0
    due_at: dict[Key, float] = field(default_factory=dict)
    under_way: set[Key] = field(default_factory=set)
    warning: str = ""

    def is_busy(self) -> bool:
        """Tell whether something is to be done here without news of the job."""
        return bool(self.look_at is not None or self.due_at or self.under_way)

    def leave(self) -> None:
        """Leave a job to another host's notifier, which writes its outbox from now on."""
        self.was_ours, self.stamp, self.look_at = False, None, None
        self.due_at.clear()


class Notifier:
    """Tells hooks of the jobs of one exchange that are `is_ours`: each hook of one at a time.

    So a hook that is mended or removed counts for all that has not begun.

    `hooks` returns the hooks in force, None while their file cannot be used.
    """

    def __init__(
        self,
        exchange: FileExchange,
        hooks: Callable[[], HookList | None],
        is_ours: Callable[[Request], bool],
    ) -> None:
        self._exchange = exchange
        self._hooks = hooks
        self._is_ours = is_ours
        self._senders = Senders()
        self._names: frozenset[str] = frozenset()
        self._owed: dict[str, _Owed] = {}
        self._telling: set[str] = set()
        """The hooks of which a try is under way."""

    def run(self, stays: Callable[[], bool]) -> None:
        """Work while this process is to stay, and then until nothing is under way."""
        while True:
            is_busy = self._work()
            if not stays() and not is_busy:
                return
            self._take_results(self._interval())

    def _interval(self) -> float:
        """Return the seconds between two looks for news of the jobs."""
        interval = LOOK_INTERVAL if self._exchange.is_local else NETWORK_LOOK_INTERVAL
        return max(interval, INTERVAL_PER_JOB * len(self._owed))

    def _work(self) -> bool:
        """Look at all jobs that are due; tell whether anything is under way."""
        self._find_jobs()
        hooks = self._hooks()
        if hooks is None:
            return False
        for name, job in sorted(self._owed.items(), key=_due_first):
            try:
                with logs.context(job=name):
                    self._look(name, job, hooks)
            except NotFound:  # it was removed meanwhile
                self._owed.pop(name, None)
            except (JobsError, OSError) as error:
                if _is_lasting(error):
                    _log.warning("%s: nobody is told of it: %s", name, error)
                    self._owed.pop(name, None)
                    continue
                if job.warning != str(error):  # it may stay for days
                    job.warning = str(error)
                    _log.warning("%s: looked at again in %g s: %s", name, RETRY_INTERVAL, error)
                job.stamp, job.paused_until = None, time.monotonic() + RETRY_INTERVAL
            except Exception:  # an error of one job must not stop the others
                _log.exception("%s: nobody is told of it", name)
                self._owed.pop(name, None)
        return any(job.is_busy() for job in self._owed.values())

    def _find_jobs(self) -> None:
        """Notice new jobs of which hooks may have to be told, and those that are gone."""
        names = self._exchange.jobs()
        if names is self._names:
            return
        for name in names - self._names:
            with contextlib.suppress(OSError):  # then a look at it tells, or a later one
                if not is_owed(self._exchange, name):
                    continue
            self._owed[name] = _Owed(Outbox(self._exchange, name))
        for name in self._owed.keys() - names:
            del self._owed[name]
        self._names = names

    # One job --------------------------------------------------------------------------------

    def _look(self, name: str, job: _Owed, hooks: HookList) -> None:
        """Start the tries that are due, and forget a job of which all is told."""
        moment = time.monotonic()
        if moment < job.paused_until:
            return
        is_due = job.look_at is not None and moment >= job.look_at
        retries = any(
            moment >= at and hook not in self._telling for (hook, _), at in job.due_at.items()
        )
        if not (is_due or retries or moment >= job.checked_at + self._interval()):
            return
        stamp, job.checked_at = self._stamp(name), moment
        is_new = stamp is None or stamp != job.stamp or hooks is not job.hooks
        if not (is_new or is_due or retries):
            return
        if not self._is_told_here(name, job):
            return
        facts = read_facts(self._exchange, name)
        job.stamp, job.hooks, job.look_at = stamp, hooks, self._next_look(facts, hooks)
        if self._waits_for_delivery(job, facts, moment):
            return
        self._give_up_removed(job, hooks)
        for hook in hooks:
            for event in self._events(job, hook, facts):
                self._try(name, job, hook, event, facts)
        if facts.state.final and not job.is_busy():
            job.outbox.close()
            del self._owed[name]

    def _is_told_here(self, name: str, job: _Owed) -> bool:
        """Tell whether to tell of a job; forget one of which another host has told all."""
        if not is_owed(self._exchange, name):
            del self._owed[name]
            return False
        if self._exchange.has(name, layout.DELETE):
            return False
        if not self._is_ours(self._exchange.request(name)):
            job.leave()
            return False
        if not job.was_ours:
            job.outbox.read()
            job.was_ours = True
        return True

    def _stamp(self, name: str) -> object:
        """Return what changes with the job's documents; None where that cannot be relied on."""
        if not self._exchange.is_local:
            return None
        directory = self._exchange.root / name
        numbers = layout.attempts(directory)
        paths = [directory, *(layout.attempt_dir(directory, number) for number in numbers)]
        stamps = tuple(map(stamp_of, paths))
        return None if None in stamps else stamps

    def _next_look(self, facts: JobFacts, hooks: HookList) -> float | None:
        moment = time.time()
        limit = next_limit(hooks, facts, moment)
        return None if limit is None else time.monotonic() + limit - moment

    def _waits_for_delivery(self, job: _Owed, facts: JobFacts, moment: float) -> bool:
        """Tell whether a job has ended just now, and its result is being delivered."""
        if not facts.state.final or facts.is_settled:
            return False
        if job.ended_at is None:
            job.ended_at = moment
        if moment >= job.ended_at + DELIVERY_PATIENCE:
            return False
        job.look_at = job.ended_at + DELIVERY_PATIENCE
        return True

    def _events(self, job: _Owed, hook: Hook, facts: JobFacts) -> Iterator[str]:
        """Yield the events of which a hook is to be told now, for the first time or again."""
        pending = [n.event for n in job.outbox.pending() if n.hook == hook.name]
        new = [
            event
            for event in due_events(hook, facts, time.time())
            if (hook.name, event) not in job.outbox.notifications
        ]
        for event in (*pending, *new):
            key = hook.name, event
            is_time = time.monotonic() >= job.due_at.get(key, 0.0)
            if key not in job.under_way and is_time:
                yield event

    def _try(self, name: str, job: _Owed, hook: Hook, event: str, facts: JobFacts) -> None:
        """Record a try, and begin it, unless another one of this hook is under way."""
        key = hook.name, event
        earlier = job.outbox.notifications.get(key)
        tries = earlier.tries if earlier is not None else 0
        due_at = job.due_at.pop(key, time.monotonic())
        if earlier is not None and (tries >= hook.tries or event not in hook.when):
            cut_off = "The last try was cut off: it may have arrived."
            why = earlier.message or (cut_off if tries else "The hook is told of it no more.")
            job.outbox.write(replace(earlier, state=GIVEN_UP, message=why))
            return
        begins = hook.name not in self._telling
        if begins or earlier is None:
            message = earlier.message if earlier is not None else None
            tries += begins
            job.outbox.write(
                HookNotification(hook.name, event, PENDING, tries, times.now(), message)
            )
        if not begins:
            job.due_at[key] = due_at
            return
        self._senders.start(name, hook, message_of(hook, event, facts))
        job.under_way.add(key)
        self._telling.add(hook.name)

    def _give_up_removed(self, job: _Owed, hooks: HookList) -> None:
        """Give up what is pending for hooks that are not configured any more."""
        names = {hook.name for hook in hooks}
        for notification in job.outbox.pending():
            key = notification.hook, notification.event
            if notification.hook not in names and key not in job.under_way:
                why = "There is no hook of this name any more."
                job.due_at.pop(key, None)
                job.outbox.write(replace(notification, state=GIVEN_UP, message=why))

    # The ends of tries ----------------------------------------------------------------------

    def _take_results(self, seconds: float) -> None:
        """Record the ends of tries, for some seconds or until there was one."""
        with contextlib.suppress(queue.Empty):
            result = self._senders.results.get(timeout=seconds)
            while True:
                with logs.context(job=result.job):
                    self._take(result)
                result = self._senders.results.get_nowait()

    def _take(self, result: TryResult) -> None:
        """Record the end of a try, and when the next one is due."""
        self._telling.discard(result.hook)
        job = self._owed.get(result.job)
        if job is None:
            return
        key = result.hook, result.event
        job.under_way.discard(key)
        job.stamp, job.checked_at = None, float("-inf")
        notification = job.outbox.notifications[key]
        hook = next((h for h in job.hooks or () if h.name == result.hook), None)
        try:
            if result.failure is None:
                _log.info("%s: %s was told: %s", result.job, *key)
                job.outbox.write(replace(notification, state=SENT, message=None))
            elif hook is None or result.failure.is_final or notification.tries >= hook.tries:
                why = result.failure.message
                _log.error("%s: %s is not told: %s. %s", result.job, *key, why)
                job.outbox.write(replace(notification, state=GIVEN_UP, message=why))
            else:
                delay = hook.retry_after * 2.0 ** (notification.tries - 1)
                delay = min(max(delay, result.failure.retry_after or 0.0), MAX_DELAY)
                why = result.failure.message
                _log.warning("%s: %s: tried again in %g s: %s", result.job, key[0], delay, why)
                job.due_at[key] = time.monotonic() + delay
                job.outbox.write(replace(notification, message=why))
        except NotFound:  # the job was removed meanwhile
            self._owed.pop(result.job, None)
        except JobsError as error:  # a full disk: it is told again when there is space
            _log.error("%s: cannot record what %s was told: %s", result.job, key[0], error)
            job.paused_until = time.monotonic() + RETRY_INTERVAL


def _is_lasting(error: JobsError | OSError) -> bool:
    """Tell whether an error stays until somebody mends the job: that of a disk may pass."""
    return isinstance(error, Damaged) and not isinstance(error.__cause__, OSError)


def _due_first(entry: tuple[str, _Owed]) -> float:
    """Return when the next try of a job is due: they begin in this order."""
    return min(entry[1].due_at.values(), default=float("inf"))
