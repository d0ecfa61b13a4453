// LP: the best relaxed assignment for the scores alone, exactly, then rounded.
#pragma once

#include "../../stop.hpp"
#include "../problem.hpp"

namespace muster {

// Solve instances begin..end-1.
void solve_linear(Index begin, Index end, const Problem& problem, const Settings& settings, const Output& out, Stop& stop);

}  // namespace muster
