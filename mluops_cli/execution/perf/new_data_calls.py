"""--rotate: calls on new data after the measurement. Results that were kept from earlier calls show in their time."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Final

from mluops_cli.execution.case.calls import GOES_ON, Calls, Result, failed
from mluops_cli.execution.kernel_process.timed_call import timed_call
from mluops_cli.execution.perf.new_data import with_new_data

_SETS: Final = 7  # calls on new data; the first is not timed: it is the first to use its memory
_FACTOR: Final = 2.0  # even the quickest call on new data takes so many times the median


def call_on_new_data(calls: Calls, median: float, ready: Callable[[], None]) -> tuple[list[float], Result]:
    """Judge calls on new data; their times in microseconds, none where the case has no new data (with_new_data).

    The result is a fail where one is wrong, or where all take much more than the median. Before each, the
    implementation is called on the old data, so that its code is as warm as in the measurement. ready runs before a
    call; the new data is put in place after it: an implementation that searches the memory could work ahead.
    """

    def settle(show: Callable[[], None]) -> None:
        with suppress(Exception):  # the judged call that follows shows what is wrong
            timed_call(calls.kernel, calls.prepared.call)
        ready()
        show()

    times: list[float] = []
    for turn in range(_SETS):
        with calls.prepared.memory.scope():
            data = with_new_data(calls.prepared, turn + 1, calls.options)
            if data is None:
                return [], {}
            new = Calls(data.prepared, calls.kernel, calls.options, many=False)
            result = new.once(partial(settle, data.show))
            if result["status"] not in GOES_ON:
                return times, {**result, "reason": f"on new data, after right ones: {result['reason']}"}
            times += new.latencies if turn else []
    least = min(times)
    if least <= _FACTOR * median or calls.options.cache != "fresh":  # no cache of the machine holds new data
        return times, {}
    text = f"a call on new data takes {least:.4g} µs at least, on the same data again {median:.4g} µs"
    return times, failed(f"cached: {text}")
