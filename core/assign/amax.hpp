// AMAX: every agent takes its best task, whatever the others do.
#pragma once

#include "../stop.hpp"
#include "problem.hpp"

namespace muster {

// Solve instances begin..end-1; those that there is no time for keep their empty assignments, as kTimeLimit.
void solve_amax(Index begin, Index end, const Problem& problem, const Settings& settings, const Output& out, Stop& stop);

}  // namespace muster
