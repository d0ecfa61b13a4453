// QUAD: Frank-Wolfe, rounding and local search put together, at three levels of effort.
#pragma once

#include "../../stop.hpp"
#include "../problem.hpp"

namespace muster {

// Solve instances begin..end-1, each on its own.
void solve_quadratic(Index begin, Index end, const Problem& problem, const Settings& settings, const Output& out, Stop& stop);

}  // namespace muster
