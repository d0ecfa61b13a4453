// AMAX: every agent takes its best task, whatever the others do.
#pragma once

#include "problem.hpp"

namespace muster {

// Solve instances begin..end-1.
void solve_amax(Index begin, Index end, const Problem& problem, const Settings& settings, const Output& out);

}  // namespace muster
