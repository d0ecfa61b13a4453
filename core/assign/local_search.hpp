// Improve an assignment by moves, swaps and kicks until none helps.
//
// A sweep finds the best step of every agent, then takes them in order of their gain, each checked again before it is
// taken. So the result does not depend on how agents and tasks are numbered, ties aside.
#pragma once

#include "../stop.hpp"
#include "plan.hpp"

namespace muster {

// Gains below this share of the largest score are rounding errors.
constexpr double kGainTolerance = 1e-11;

// Workspace of the local search.
struct Search {
  Array1<double> gain;  // [N] of the best step of each agent
  Array1<double> own;   // [N] each agent's score of its present task
  Array1<Index> order;
  Array1<double> zeros;
  Plan trial;
  Array1<double> kick_gain;  // [2M] of filling task j, of emptying it (m + j)
  Array1<Index> kick_order;
  Array1<double> kick_zeros;
};

Search make_search(Arena& arena, Index n, Index m);

// Moves, and swaps (if wanted) where no move helps, until neither does.
void improve(Plan& plan, const Instance& instance, Search& search, bool swaps, double scale, Stop& stop);

// The best move into a full task that sends one of its agents elsewhere, if any helps; whether one did.
//
// Costs far more than moves and swaps, and helps where contributions differ.
bool eject(Plan& plan, const Instance& instance, double scale, Stop& stop);

// Fill or empty single tasks, the most promising first, move on from there, and keep the first that improves.
bool kick(Plan& plan, const Instance& instance, Search& search, Index tries, double scale, Stop& stop);

// Mean contribution to task j.
double mean_use(const Instance& instance, Index j);

// The objective with the penalty for agents left out, by way of the marginals: sum h + c·(marginal - diag g) / 2.
double total_value(const Plan& plan, const Instance& instance);

}  // namespace muster
