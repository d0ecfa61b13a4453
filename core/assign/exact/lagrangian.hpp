// Lagrangian bound: every task fills its own knapsack; the prices of agents that several tasks choose rise.
//
//   L(y) = sum_i y_i + sum_j max { sum_i (h_ij - y_i) x_i : sum_i mu_ij x_i <= u_j, x in {0, 1} }
//
// bounds every assignment for any prices y, and at the best ones far better than the linear programme does, since no
// task takes a part of an agent. They are sought by subgradient steps of Polyak's length.
//
// Because the knapsacks are independent, forcing agent i to task j changes L by what knapsack j loses by taking it and
// what the others lose by doing without: a bound for each pair, for the price of two more tables (Posta, Ferland and
// Michelon 2012). Pairs whose bound is no better than the best assignment known are closed.
#pragma once

#include "knapsack.hpp"

namespace muster {

// Prices of agents, and the workspace of subgradient steps.
struct AgentPrices {
  Array1<double> price;      // [N]
  Array1<double> best;       // [N] those of the lowest bound so far
  Array1<double> excess;     // [N] number of tasks that choose an agent, less one; 0 for fixed agents
  Array1<double> direction;  // [N] of the next step
};

AgentPrices make_agent_prices(Arena& arena, Index n);

// Rule of the subgradient steps: how many at most, the first one's length, the steps without progress before they get
// shorter, their target value, and how far below the bound the target may be.
struct StepRule {
  Index steps;
  double length;
  Index patience;
  double target;
  double reach;
};

enum class Outcome {
  bound,    // a bound
  beaten,   // proof that nothing better is left
  reached,  // an assignment that reaches the bound
};

struct Lowered {
  double bound;
  Outcome outcome;
};

// Lower the bound until it is at most `enough`. Leaves the best prices in `price`; for Outcome::reached `taken` is an
// assignment instead.
Lowered lower_bound(Knapsacks& knapsacks, const AgentPrices& prices, StepRule rule, double enough, Stop& stop);

// Upper bound on assignments with agent i on task j; `others` is the agent's `sum_leave`. After `weigh_choices`.
inline double pair_bound(const Knapsacks& knapsacks, Index i, Index j, double bound, double others) {
  return bound + knapsacks.join(j, i) + others - knapsacks.leave(j, i);
}

// Change of all knapsacks' values without agent i.
inline double sum_leave(const Knapsacks& knapsacks, Index i) {
  double total = 0.0;
  for (Index j = 0; j <= knapsacks.m; ++j) total += knapsacks.leave(j, i);
  return total;
}

}  // namespace muster
