"""A stand-in for Ray in this process: workers that finish in a chosen order and die when they are told to."""

from types import SimpleNamespace


class RayError(Exception):
    pass


class RayTaskError(RayError):
    def __init__(self, cause):
        self.cause = cause


class WorkerDied(RayError):
    pass


class Ray:
    """`deaths`: how often a worker dies with a batch, by batch. `choose`: which of the waiting calls ends first.

    `done` has the batches that were finished, `started` the number of workers so far, `killed` that of dead ones.
    """

    exceptions = SimpleNamespace(RayError=RayError, RayTaskError=RayTaskError)

    def __init__(self, deaths=None, choose=lambda calls: calls[-1]):
        self.deaths, self.choose = dict(deaths or {}), choose
        self.done, self.started, self.killed, self.resources = [], 0, 0, None

    def remote(self, **resources):
        self.resources = resources

        def wrap(cls):
            return SimpleNamespace(remote=lambda: self._start(cls))

        return wrap

    def _start(self, cls):
        self.started += 1
        worker = cls()
        call = lambda name: SimpleNamespace(remote=lambda *args: (self, worker, name, args))  # noqa: E731
        return SimpleNamespace(load=call("load"), run=call("run"))

    def wait(self, calls):
        return [self.choose(calls)], []

    def get(self, call):
        _, worker, name, args = call
        key = args[0] if name == "run" else None
        if self.deaths.get(key, 0):
            self.deaths[key] -= 1
            raise WorkerDied(f"killed\nwith {key}")
        try:
            result = getattr(worker, name)(*args)
        except Exception as error:
            raise RayTaskError(error) from error
        if name == "run":
            self.done.append(args[0])
        return result

    def kill(self, worker):
        self.killed += 1
