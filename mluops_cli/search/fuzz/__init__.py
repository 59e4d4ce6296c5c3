"""`mluops fuzz`: legal calls drawn from a contract until the implementation fails.

Why hypothesis has no part in this: its engine owns the loop and runs one example after the other in its own process,
while cases here run in worker processes that may crash or hang, several at once, and are the same whatever -j is.
"""
