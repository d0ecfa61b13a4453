// A Lagrangian bound: agents get prices pi instead of the limit of one task each.
//
//     L(pi) = sum_i pi_i + sum_j max(empty_j, best team of task j under scores h_ij - pi_i),   pi >= idle.
//
// Where every task gets the same from all its agents, the least L is the value of the linear programme with opening
// variables y_j: least_j y_j <= load_j <= capacity_j y_j and b_ij <= y_j.
#pragma once

#include <vector>

#include "../../stop.hpp"
#include "teams.hpp"

namespace muster {

enum : signed char { kClosed = 0, kOpen = 1, kUndecided = 2 };
constexpr Index kFreeAgent = -2;

// Decisions on the path to a node of branch and bound.
struct Decisions {
  std::vector<signed char> open;  // [M]
  std::vector<Index> fixed;       // [N] the agent's task, -1 for none, kFreeAgent
  std::vector<char> banned;       // by pair
  std::vector<double> load;       // [M] of fixed agents
  std::vector<double> value;      // [M] their scores
  std::vector<Index> count;       // [M]
};

Decisions make_decisions(const Teams& teams);

// Fix agent i to the task of pair e.
void fix_pair(Decisions& decisions, const Teams& teams, Index i, Index j, Index e);
void release_pair(Decisions& decisions, const Teams& teams, Index i, Index j, Index e);

// A point of the dual, with the team that each task chooses there.
struct Dual {
  std::vector<double> price;   // [N] pi
  std::vector<double> team;    // [M] value of the best team under these prices, -infinity where there is none
  std::vector<double> chosen;  // by pair: the share of it that the task chooses
  std::vector<double> demand;  // [N] how many tasks choose the agent
  double bound = kInfinity;
};

Dual make_dual(const Teams& teams);

// Compute everything at dual.price.
void evaluate(Dual& dual, const Teams& teams, const Decisions& decisions);

// Subgradient steps from dual.price with the known value `lower`; the best point is left in `dual`.
//
// Ends early where the bound falls to `enough`. `share` [M] gets how often each task was open.
void descend(Dual& dual, const Teams& teams, const Decisions& decisions, double lower, double enough, Index steps,
             std::vector<double>& share, Stop& stop);

}  // namespace muster
