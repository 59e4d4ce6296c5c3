"""One case in a worker process: its calls, buffers and judgement."""
