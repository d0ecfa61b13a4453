// Proof for QUAD: branch and bound over agents, with limits on what pair terms can add.
//
// At every node each agent that is left is bounded on its own: by its score, what it earns with those that are placed,
// what as many others as are left could add (pair_terms.hpp), less what the capacity would cost. The agent whose
// choices differ most is placed next, on its best choice first; of agents that are alike, later ones take no earlier
// task.
#pragma once

#include "../../stop.hpp"
#include "../plan.hpp"

namespace muster {

// The path from the root to the present node, and what bounds it.
struct Proof {
  Array1<Index> order;      // [N] agents; the first ones are placed, in this order
  Array1<Index> like;       // [N] the first agent that has the same scores and contributions
  Array2<Index> choice;     // [N, M + 1] tasks of the agent at each depth, m for none, the best bound first, ...
  Array2<double> bound;     // [N, M + 1] ... their bounds, ...
  Array1<Index> choices;    // [N] ... how many, ...
  Array1<Index> following;  // [N] ... and the next to be tried
  Array1<double> ties;      // [M + 1] zeros
  Array2<double> most;      // [N, M] what r others can add to what an agent on a task earns (list_most)
  double placed = 0.0;      // what the agents that are placed earn
  double charge = 0.0;      // what the capacity that is left would cost
};

// Whether two agents have the same scores and contributions.
bool are_alike(const Instance& instance, Index i, Index other);

Proof make_proof(Arena& arena, Index n, Index m);

// Search until nothing better than `plan` is left, `nodes` nodes were expanded, or stopped.
//
// `plan` becomes the best assignment found; returns an upper bound on every assignment (by total_value).
// `proof.most` is filled in; `prices` [M] are any that are not negative, 0 where capacity is not limited.
double prove(Plan& plan, Plan& trial, const Instance& instance, Proof& proof, const Array1<double>& prices,
             double nodes, double scale, Stop& stop);

}  // namespace muster
