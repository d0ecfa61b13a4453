// Proof: branch and bound over agents, with Lagrangian bounds and the pairs that they close.
//
// At every node the prices are improved a little, pairs that cannot beat the best assignment are closed, agents with one
// choice left are fixed, and one of the others is branched on, its best choice first. Depth first: memory is one row a
// depth, and the way down is a strong heuristic by itself.
#pragma once

#include "../../stop.hpp"
#include "../problem.hpp"

namespace muster {

// Improve the answers in rows[begin:end], which LP has solved, proven and rounded, or prove them, computing no more than
// so many `cells` of knapsacks' tables for each. settings.prove goes for the proof rather than for good assignments soon.
void prove_batch(Index begin, Index end, const Problem& problem, const Settings& settings, const Output& out, Stop& stop,
                 const Array1<const Index>& rows, double cells);

}  // namespace muster
