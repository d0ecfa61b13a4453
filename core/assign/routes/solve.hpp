// Routes for a batch: every instance gets routes of its own, begun from those of the last decision if there are any.
#pragma once

#include "../../stop.hpp"
#include "../problem.hpp"

namespace muster {

// What routes have beyond a Problem.
struct RouteBatch {
  Array3<const double> end_scores;  // [B, N, M] from an agent's last task to its end; no layers for none
  Array3<const Index> previous;     // [B, N, M] routes to begin from; no layers for none
  Array3<Index> routes;             // [B, N, M] output: the tasks of each agent in order, then -1
  Index iterations;                 // of the first round; each further round has twice as many
  Index rounds;                     // further rounds
  Index power;                      // kTotalPower or kMakespanPower
};

// Solve instances begin..end-1.
void solve_routes(Index begin, Index end, const Problem& problem, const RouteBatch& batch, const Output& out,
                  Stop& stop);

}  // namespace muster
