// A lower bound on what routes cost.
#pragma once

#include "routes.hpp"

namespace muster {

// No routes cost less: the task that is dearest to reach (and to leave) at all, and the cheapest legs into all visits,
// shared out evenly; for the total, the cheapest legs into each visit. NaN where a cost is negative.
double lower_bound(Arena& arena, const RouteProblem& problem);

}  // namespace muster
