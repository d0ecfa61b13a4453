"""All that the status of an answer can say: the kernels' endings, and what a search that follows them adds.

Apart from `outcomes`, which every kernel reads: a change there compiles them all anew.
"""

from __future__ import annotations

from muster.assign import outcomes

INCOMPLETE = outcomes.INVALID + 1

STATUSES = (*outcomes.STATUSES, "incomplete")
"""What a Solution's status can be: those of `muster.assign.outcomes`, and

incomplete: assign_all, and no assignment was found that leaves nobody out who fits somewhere, though there may be one.
Where it is proven that there is none, the best of those that leave out fewest is optimal.
"""

NAMES = (*outcomes.STATUSES, "invalid", "incomplete")
"""By the kernels' codes."""
