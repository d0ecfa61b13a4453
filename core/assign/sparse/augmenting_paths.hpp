// Few allowed pairs, each agent taking the same capacity: exact, by shortest augmenting paths.
//
//     maximise sum h_ij b_ij   with   sum_j b_ij <= 1,   sum_i b_ij <= slots_j,   b in {0, 1}, allowed pairs only.
//
// Agents enter one after the other. Each takes the shortest augmenting path at the present prices: to a task with a free
// slot, or by sending another agent elsewhere, which may send another one, or leave it out. That is Dijkstra's algorithm
// over tasks, as in Jonker and Volgenant's method for dense problems; prices then rise by the slack of the path.
// Every agent always has its best score less price, and a task with free slots costs nothing: so the end is an optimum,
// and the prices prove it.
#pragma once

#include "../../stop.hpp"
#include "pairs.hpp"

namespace muster {

// The best assignment, a pair for each agent, and the prices that prove it; false if stopped.
bool solve_by_augmenting_paths(const Pairs& pairs, const Array1<Index>& chosen, const Array1<double>& price, Stop& stop);

}  // namespace muster
