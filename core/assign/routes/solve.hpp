// Routes for a batch: every instance gets routes of its own, begun from those of the last decision if there are any.
#pragma once

#include "../../stop.hpp"
#include "../problem.hpp"

namespace muster {

// Solve instances begin..end-1.
//
// end_scores [B, N, M]: from an agent's last task to its end, no layers for none; previous [B, N, M]: routes to begin from,
// no layers for none; routes [B, N, M]: output, the tasks of each agent in order, then -1; power: kTotalPower or
// kMakespanPower. The first round has settings.steps iterations, each of settings.rounds further ones twice as many.
void solve_routes(Index begin, Index end, const Problem& problem, const Settings& settings, const Output& out, Stop& stop,
                  const Array3<const double>& end_scores, const Array3<const Index>& previous, const Array3<Index>& routes,
                  Index power);

}  // namespace muster
