// A lower bound on the cost of routes.
#pragma once

#include "routes.hpp"

namespace muster {

// Lower bound on the cost of any routes: the task that costs most to reach (and to leave) at all, and the cheapest legs
// into all visits, shared out evenly; for the total, the cheapest legs into each visit. NaN where a cost is negative.
double lower_bound(Arena& arena, const RouteProblem& problem);

}  // namespace muster
