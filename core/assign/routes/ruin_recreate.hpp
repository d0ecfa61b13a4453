// Better routes by ruin and recreate: take strings of neighbouring visits out of a few routes, put each back where it
// adds least, and keep the result unless it is clearly worse (after Christiaens and Vanden Berghe, 2020).
//
// An iteration costs what it touches: positions are looked for next to a task's nearest neighbours, and a rejected
// change is undone visit by visit in reverse.
#pragma once

#include <cstdint>

#include "../../stop.hpp"
#include "positions.hpp"

namespace muster {

// The visits that an iteration removed, and everything needed to undo it.
struct Ruin {
  Array1<Index> visit;    // [V] taken out, in that order
  Array1<Index> behind;   // [V] the node that each stood after when it was taken out; kUnserved if nowhere
  Array1<double> key;     // [V] sorts the visits for putting them back
  Array1<Index> order;    // [V]
  Array1<Index> touched;  // [N] agents whose cost changed, in that order
  Array1<double> cost;    // [N] what their routes cost before
  Array1<Index> mark;     // [N] the last iteration that touched (2t) or ruined (2t + 1) an agent's route
  Index visits;           // taken out
  Index agents;           // touched
};

Ruin make_ruin(Arena& arena, const RouteProblem& problem);

// Insert every visit that is not on any route, the farthest from all agents first, each where it adds least; once a stop is
// requested, where it adds least among its neighbours, or else as a first stop.
void construct(const RouteProblem& problem, Routes& routes, const Neighbours& neighbours, Ruin& ruin, Stop& stop);

// Ruin and recreate so many times, or until the bound is met or a stop is requested; the best routes are left in
// `best`. Returns the number of iterations.
Index improve(const RouteProblem& problem, Routes& routes, Routes& best, const Neighbours& neighbours, Ruin& ruin,
              std::uint64_t& rng, Index iterations, double bound, Stop& stop);

// Whether no routes can be better: nothing is unserved and the bound is met, up to rounding.
bool meets_bound(const Routes& routes, Index power, double bound, double objective);

}  // namespace muster
