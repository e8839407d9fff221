from portico.features.jobs import demo_entry
from portico.features.jobs.entry import Alt, Loop, Par, Ref, Seq, Work, parts_of, refs_of
from portico.features.jobs.models import models_of_job, models_used


def kinds(work: Work) -> set[type[Work]]:
    return {type(work)}.union(*(kinds(child) for _, child in parts_of(work)))


def test_the_demo_shows_every_kind_of_work_and_uses_every_task() -> None:
    entry = demo_entry()
    works = [job.work for job in entry.jobs.values()]
    assert set().union(*map(kinds, works)) == {Ref, Seq, Par, Loop, Alt}
    assert {ref.task_id for work in works for ref in refs_of(work)} == set(entry.tasks)
    cells = [cell.job_name for row in entry.grid for cell in row.jobs if cell is not None]
    assert sorted(cells) == sorted(entry.jobs)


def test_the_demo_needs_only_the_model_of_the_demo_agent() -> None:
    entry = demo_entry()
    assert {use.model_id for name in entry.jobs for use in models_of_job(entry, name)} == {"demo"}
    assert {use.model_id for use in models_used(entry)} == {"demo"}


def test_every_prompt_of_the_demo_says_what_the_demo_agent_answers() -> None:
    for task in demo_entry().tasks.values():
        assert "[[say:" in task.prompt[0]
        if task.criteria and task.criteria.condition:
            assert "|job_boolean_" in task.criteria.condition[0] or "[[tool:job_boolean_" in task.criteria.condition[0]
