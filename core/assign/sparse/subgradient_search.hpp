// Few allowed pairs with contributions of any kind: prices that bound, an assignment rounded by them, local search.
//
// The relaxation is not solved to the end: prices pi >= 0 of any kind prove that no assignment is worth more than
// sum_j u_j pi_j + sum_i max(idle, max_j h_ij - mu_ij pi_j), and subgradient steps make that small. Agents then take
// their best tasks at those prices, those that would lose most first, and moves and ejections improve on it.
#pragma once

#include "../../stop.hpp"
#include "pairs.hpp"

namespace muster {

// A good assignment, a pair for each agent, and prices that bound what any is worth. The search also begins from `start`
// [N], a pair for each agent or kNone, which has to be within the capacities.
void search_assignment(const Pairs& pairs, const Array1<const Index>& start, const Array1<Index>& chosen,
                       const Array1<double>& price, Stop& stop);

}  // namespace muster
