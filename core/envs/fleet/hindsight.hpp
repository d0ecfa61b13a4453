// The optimum with all requests known is a flow of vehicles from request to request, found as a matching.
#pragma once

#include "fleet.hpp"

namespace muster::fleet {

// scores [N + R, R]: what a request adds as a vehicle's first (rows 0..N-1), or as the next after another request; 0 for
// not serving it (its own row); -inf where it cannot be. `requests` [R, 4]: minute, index, pick-up and drop-off, by minute.
void score_flow(const Fleet& fleet, const Settings& settings, const Roads& roads, Index slot, Array2<const Index> requests,
                Array2<double> scores);

}  // namespace muster::fleet
