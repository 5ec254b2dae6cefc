"""Handlers that are coroutine functions: awaits their results one after the other."""

from __future__ import annotations

import asyncio
import inspect
import math
import weakref
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextvars import ContextVar
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, TypeVar

from .endpoint import Endpoint
from .handle import Handle
from .inbox import Inbox
from .naming import kind_of
from .reactor import Reactor, elsewhere
from .values import wait_limit

if TYPE_CHECKING:
    Futures = dict[asyncio.Future[None], None]

#: The object whose handler runs. Tasks inherit it; `asyncio.wait_for` makes one before Python 3.12.
_whose: ContextVar[weakref.ref[Awaiting] | None] = ContextVar("librealtime_handler", default=None)

Self = TypeVar("Self", bound="Awaiting")
F = TypeVar("F", bound="Callable[..., object] | None")


class Awaiting(Endpoint):
    """The asyncio side of an object, which belongs to the thread of one asyncio loop.

    A task awaits what handlers return. Messages that arrive faster than that are queued; above the
    limits, receiving pauses.
    """

    _awaits = True
    _reactor: Reactor
    _loop: asyncio.AbstractEventLoop
    _task: asyncio.Task[None] | None = None

    def _prepare_awaiting(self, reactor: Reactor, count: int, size: int) -> None:
        """:param count: and `size` limit the queue of results to await; 0 means no limit."""
        self._reactor = reactor
        self._loop = reactor.loop
        # A dict with keys only serves as an ordered set, so that waiters take turns fairly.
        self._waiters: Futures = {}
        self._awaited: Inbox[tuple[Awaitable[Any], bool, bool]] = Inbox(count, size)
        self._worker: asyncio.Task[None] | None = None
        # Set on close: drop the results of message handlers, or of all handlers.
        self._forgets_messages = self._forgets_all = False

    def _construct(self, make: Callable[[], None], count: int = 0, size: int = 0) -> None:
        """Makes the object in C by `make`, on the running asyncio loop; for constructors. For
        `count` and `size` see ``_prepare_awaiting``."""
        self._prepare_awaiting(Reactor.current(), count, size)
        try:
            make()
        except BaseException as error:
            self._not_made(error)
            self._reactor.release_when_idle()
            raise
        self._reactor.add(self)
        self._hold()

    def _join(self) -> Handle:
        return self._reactor.require()

    def _await(self, awaitable: Awaitable[Any], size: int, is_end: bool = False) -> None:
        """Queues what a handler returned.

        :param is_end: this marks the end of a message; it comes after its handlers' results.
        """
        is_message = size > 0
        if self._forgets_all or (self._forgets_messages and is_message):
            _forget(awaitable)
            return
        if self._awaited.add((awaitable, is_message, is_end), size):
            self._pause()
        if self._worker is None:
            self._worker = self._loop.create_task(self._work())
            self._worker.add_done_callback(self._ended_working)
            self._hold()

    async def _work(self) -> None:
        awaited = self._awaited
        _whose.set(weakref.ref(self))
        try:
            while awaited.messages:
                awaitable, _, _ = awaited.messages.popleft()
                if awaited.paused and len(awaited.messages) <= awaited.resume_at:
                    awaited.paused = False
                    self._go_on()
                try:
                    await awaitable
                except asyncio.CancelledError as error:
                    if _is_cancelled():
                        raise
                    # The awaited coroutine was cancelled, not this task.
                    self._handler_failed(error)
                except Exception as error:
                    self._handler_failed(error)
        finally:
            self._ended_working(self._worker)

    def _ended_working(self, worker: asyncio.Task[None] | None) -> None:
        """Runs twice (from `_work` and as done-callback), or once if cancelled before it began."""
        if self._worker is worker is not None:
            self._worker = None
            self._forget_awaited()
            self._worked_off()

    def _handler_failed(self, error: BaseException) -> None:
        context = {
            "message": "a handler of a connection failed",
            "exception": error,
            "connection": self,
        }
        self._loop.call_exception_handler(context)

    @property
    def _is_awaiting(self) -> bool:
        """Whether handlers run and the caller is not inside one of them."""
        return self._worker is not None and not self._is_in_handler

    @property
    def _is_in_handler(self) -> bool:
        whose = _whose.get()
        return whose is not None and whose() is self

    async def _let_handlers_finish(self) -> None:
        """Waits for the running handler, and for all queued ones that do not handle messages."""
        self._forgets_messages = True
        self._forget_awaited(messages=True)
        if self._worker is not None and self._is_awaiting:
            await asyncio.wait([self._worker])

    def _stop_awaiting(self) -> None:
        """Cancels all handlers except the one that calls this."""
        self._forgets_all = True
        if self._worker is not None and self._is_awaiting:
            self._worker.cancel()
        self._forget_awaited()

    def _forget_awaited(self, messages: bool = False) -> None:
        """Drops queued results.

        :param messages: drop only those of messages, but keep the end of a message whose last
            handler is running.
        """
        awaited = self._awaited
        kept, is_whole = [], True
        while awaited.messages:
            awaitable, is_message, is_end = awaited.messages.popleft()
            if messages and (not is_message or (is_end and is_whole)):
                kept.append((awaitable, is_message, is_end))
            else:
                _forget(awaitable)
                is_whole = False
        awaited.messages.extend(kept)
        if awaited.paused:
            awaited.paused = False
            self._go_on()

    def _worked_off(self) -> None:
        """Called when nothing is left to await."""
        self._wake(self._waiters)
        self._hold()

    @property
    def _is_paused(self) -> bool:
        return self._awaited.paused or super()._is_paused

    # Answers that take time.

    def _later(
        self,
        awaitable: Awaitable[Any],
        then: Callable[[Any], None],
        failed: Callable[[Exception], None],
    ) -> None:
        # Keep a reference, as asyncio refers to tasks weakly.
        self._task = self._loop.create_task(_answer(awaitable, then, failed))

    # Waiting.

    def _check_loop(self) -> None:
        """Raises on another loop, where nothing would arrive; each ``asyncio.run`` makes one."""
        if asyncio.get_running_loop() is not self._loop:
            raise elsewhere(self._kind.noun)

    def _may_wait(self, timeout: float | None) -> float | None:
        """Checks, before a call does anything, that it may wait for so many seconds.

        :returns: the limit, or None for no limit.
        """
        self._check_loop()
        return wait_limit(timeout)

    async def _until(
        self,
        is_ready: Callable[[], bool],
        timeout: float | None = None,
        waiters: Futures | None = None,
    ) -> bool:
        """Waits until `is_ready`; False on timeout.

        :param waiters: those that are woken when it may be; None for those of the object.
        """
        waiters = self._waiters if waiters is None else waiters
        limit, loop = self._may_wait(timeout), self._loop
        end = math.inf if limit is None else loop.time() + limit
        while not is_ready():
            left = end - loop.time()
            if left <= 0:
                return False
            # Wakes the others in vain.
            timer = None if limit is None else loop.call_later(left, self._wake, waiters)
            try:
                await self._wait(waiters)
            finally:
                if timer is not None:
                    timer.cancel()
        return True

    async def _wait(self, waiters: Futures) -> None:
        """Waits for something to change; meanwhile the reactor keeps this object alive."""
        future = self._loop.create_future()
        waiters[future] = None
        self._reactor.hold(self)
        try:
            await future
        finally:
            waiters.pop(future, None)
            self._hold()

    @staticmethod
    def _wake(waiters: Futures) -> None:
        for future in waiters:
            if not future.done():
                future.set_result(None)
        # Events that arrive before the woken tasks run need not wake them again.
        waiters.clear()

    @property
    def _is_wanted(self) -> bool:
        """Whether a task waits, or events have somewhere to go even if nobody refers to this
        object."""
        raise NotImplementedError

    def _hold(self) -> None:
        """Updates whether the reactor keeps this object alive; call when a reason changes."""
        if self._worker is not None or (not self._is_closed and self._is_wanted):
            self._reactor.hold(self)
        else:
            self._reactor.let_go(self)

    async def __aenter__(self: Self) -> Self:
        return self

    async def __aexit__(self, kind: object, error: object, trace: object) -> None:
        await self._leave(kind is None)

    async def _leave(self, in_order: bool) -> None:
        """Runs at the end of an ``async with``; `in_order` is False after an exception."""
        raise NotImplementedError

    # End.

    def _ended(self) -> None:
        super()._ended()
        self._wake(self._waiters)
        self._reactor.remove(self)
        self._hold()
        task, self._task = self._task, None
        if task is not None and task is not current_task():
            task.cancel()

    def _was_collected(self) -> None:
        super()._was_collected()
        self._reactor.was_collected()

    def _keep(self, error: BaseException) -> None:
        self._reactor.errors.append((self, error))


def handlers_of(given: Mapping[str, Any], names: Iterable[str]) -> SimpleNamespace:
    """The user's functions with these names, or None for each. They are called during a
    dispatch."""
    for name in names:
        check_function(given[name], name)
    return SimpleNamespace(**{name: given[name] for name in names})


def check_function(function: object, name: str) -> None:
    if function is not None and not callable(function):
        raise TypeError(f"{name} is {kind_of(function)}; a function is expected")


def plain(function: F, name: str) -> F:
    """Checks that a function whose result is needed at once is not a coroutine function.

    :raises TypeError: for a coroutine function.
    """
    if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(function, "__call__", None)  # noqa: B004
    ):
        raise TypeError(f"{name} is a coroutine function; its result is needed at once")
    return function


def at_once(answer: Any, name: str) -> Any:
    """The result of a plain function; raises if it returned a coroutine after all."""
    if hasattr(answer, "__await__"):
        _forget(answer)
        raise TypeError(f"{name} returned a coroutine; its result is needed at once")
    return answer


def current_task() -> asyncio.Task[Any] | None:
    try:
        return asyncio.current_task()
    except RuntimeError:  # no loop runs on this thread
        return None


async def _answer(
    awaitable: Awaitable[Any],
    then: Callable[[Any], None],
    failed: Callable[[Exception], None],
) -> None:
    try:
        then(await awaitable)
    except Exception as error:
        failed(error)


def _forget(awaitable: Awaitable[Any]) -> None:
    """Closes a coroutine, since Python warns about one that is never awaited."""
    if asyncio.iscoroutine(awaitable):
        awaitable.close()


def _is_cancelled() -> bool:
    """Whether the current task is cancelled. Python before 3.11 cannot tell; then True."""
    cancelling = getattr(asyncio.current_task(), "cancelling", None)
    return cancelling is None or cancelling() > 0
