"""Plans that are the same in every save and so are not sent again."""

from __future__ import annotations

from dataclasses import replace
from threading import Lock

from .planner import SavePlan

_lock = Lock()
# Kind of planner -> what is remembered of its last save, under _lock. One save at a
# time uses an entry: those of one group come one after another.
_caches: dict[str, PlanCache] = {}


def of(kind: str) -> PlanCache:
    """What is remembered for a kind of planner."""
    with _lock:
        return _caches.setdefault(kind, PlanCache())


class PlanCache:
    """The plans of the last save.

    `sent` is what this rank sent and `used` what it was answered. At the coordinator
    `given` is what all ranks sent, `decided` what they were answered.
    """

    def __init__(self) -> None:
        self.sent = self.used = self.pending = None
        self.given: list[SavePlan] | None = None
        self.decided: list[SavePlan] = []
        self.metadata = None

    def to_send(self, plan: SavePlan) -> SavePlan:
        """The plan, or an empty one that says "as before"."""
        if self.sent is not None and plan == self.sent:
            return SavePlan([], usable=False)
        self.pending = plan
        return plan

    def decide(self, plans: list[SavePlan], decision) -> tuple:
        """(an answer for each rank, metadata); `decision` makes them anew."""
        if self.given is not None and len(self.given) == len(plans):
            if not any(plan.usable for plan in plans):
                return [SavePlan([], usable=False)] * len(plans), self.metadata
            pairs = zip(plans, self.given, strict=True)
            plans = [new if new.usable else old for new, old in pairs]
        elif not all(plan.usable for plan in plans):
            raise RuntimeError(
                "enable_plan_caching: the number of ranks has changed since the last "
                "save; use a planner without it for this one"
            )
        before, answers = self.decided, decision(plans)
        self.given, (self.decided, self.metadata) = plans, answers
        if len(before) != len(self.decided):
            return answers
        pairs = zip(before, self.decided, strict=True)
        same = SavePlan([], usable=False)
        return [same if old == new else new for old, new in pairs], self.metadata

    def to_use(self, answer: SavePlan) -> SavePlan:
        """The plan that an answer stands for; the save has been agreed on."""
        if self.pending is not None:
            self.sent, self.pending = self.pending, None
        if answer.usable:
            self.used = answer
            return answer
        # Where it is written to is new at every save.
        return replace(self.used, storage_data=answer.storage_data)
