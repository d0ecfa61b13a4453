// Exact linear programme when contributions split into agent and task parts: a transportation network simplex.
//
// With mu_ij = a_i d_j the flow f_ij = a_i b_ij turns the relaxation into
//
//     maximise sum c_ij f_ij   with   sum_j f_ij <= a_i,   sum_i f_ij <= u_j / d_j,   c_ij = w_ij / a_i.
//
// A root node plays every slack, so the empty assignment is a starting basis and no big-M is needed. Nodes are numbered
// agents 0..n-1, tasks n..n+m-1, root n+m. A basis is a spanning tree; `flow[v]` belongs to the arc between v and its
// parent, which always points from the agent side to the task side: up from an agent, down to a task.
//
// The basis stays strongly feasible (every task's parent arc carries flow), which rules out cycling (Cunningham 1976).
#pragma once

#include "../../stop.hpp"
#include "../problem.hpp"
#include "tree.hpp"

namespace muster {

// A reduced profit counts as positive above this share of the largest profit.
constexpr double kPriceTolerance = 1e-13;
// Pivots after which the duals are recomputed before optimality is declared.
constexpr Index kTrustedPivots = 50;

// Far more pivots than instances of this size need.
inline Index pivot_limit(Index n, Index m) { return 1000 + 100 * (n + m); }

// A greedy, strongly feasible basis: each agent in turn takes its best task with capacity left, in part if need be.
void start_transport(const Tree& tree, const Array2<double>& profit, const Array1<double>& slack,
                     const Array1<double>& supply, const Array1<double>& capacity, Index n, Index m);

// Duals of the basis, recomputed from the root: y_i + pi_j = c_ij on every tree arc, 0 at the root.
void price_transport(const Tree& tree, const Array2<double>& profit, const Array1<double>& slack, Index n, Index m);

// Pivot until no arc is worth more than `tolerance` to a whole agent; the tree is modified in place.
//
// `lists` [n, k] restricts agent i to the tasks lists[i]; with k = 0 every task is looked at. Rows are looked at in turn,
// the best arc of a row enters. After many pivots the duals are recomputed before optimality is declared.
Status optimise_transport(const Tree& tree, const Array2<double>& profit, const Array1<double>& slack,
                          const Array1<double>& supply, const Array1<double>& inverse_supply,
                          const Array2<Index>& lists, Index n, Index m, double tolerance, Stop& stop);

}  // namespace muster
