"""The triggers of a plan: the only one, or those of its list `on`."""

from portico.features.automations.events import After, AutomationPlan, FilesTrigger, Hook, Overlap, Schedule, Trigger


def triggers_of(plan: AutomationPlan) -> list[Trigger]:
    """At least one; it is empty if the automation starts by hand."""
    return plan.on or [Trigger(plan.schedule, plan.hook, plan.files, plan.after)]


def schedules_of(plan: AutomationPlan) -> list[Schedule]:
    return [each.schedule for each in triggers_of(plan) if each.schedule is not None]


def hooks_of(plan: AutomationPlan) -> list[Hook]:
    return [each.hook for each in triggers_of(plan) if each.hook is not None]


def watches_of(plan: AutomationPlan) -> list[FilesTrigger]:
    return [each.files for each in triggers_of(plan) if each.files is not None]


def afters_of(plan: AutomationPlan) -> list[After]:
    return [each.after for each in triggers_of(plan) if each.after is not None]


def overlap_of(plan: AutomationPlan) -> Overlap:
    """A delivery or an end comes once; a time or a change of files comes again."""
    return plan.overlap or ("queue" if hooks_of(plan) or afters_of(plan) else "skip")
