// Where a visit can go: next to the visits and at the starts that are nearest, where it adds least.
#pragma once

#include <cstdint>

#include "routes.hpp"

namespace muster {

struct Neighbours {
  Array2<Index> visits;  // [V, K] the visits whose tasks are nearest to a visit's, nearest first
  Array2<Index> agents;  // [M, K] the agents that start nearest to a task
};

Neighbours make_neighbours(Arena& arena, const RouteProblem& problem);

// The node after which visit v adds least among its neighbours, each overlooked with probability `blink`; -1 if none
// will do.
Index best_near_position(const RouteProblem& problem, const Routes& routes, const Neighbours& neighbours, Index v,
                         std::uint64_t& rng, double blink);

// The node after which visit v adds least, among all from node `begin` on; -1 if none will do.
Index best_position(const RouteProblem& problem, const Routes& routes, Index v, Index begin = 0);

}  // namespace muster
