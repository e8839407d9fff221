"""Which worker of the tests does what."""

from xdist.scheduler import LoadFileScheduling
from xdist.workermanage import WorkerController


class Scheduler(LoadFileScheduling):
    """When a worker dies, its finished files do not go back into the queue: xdist gives them to others, who then wait
    for the end of files that have no tests left. Nor does the test that it died of: it is run alone, later.
    xdist has no setting for this. The class is public; `_reschedule` is not: no public method does that."""

    def remove_node(self, node: WorkerController) -> str | None:
        files = self.assigned_work.pop(node)
        died_of = next((test for tests in files.values() for test, done in tests.items() if not done), None)
        for tests in files.values():
            if died_of in tests:
                tests[died_of] = True
        self.workqueue.update({name: tests for name, tests in files.items() if not all(tests.values())})
        if died_of is not None:
            for other in self.assigned_work:
                self._reschedule(other)
        return died_of
