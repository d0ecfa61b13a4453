// Improve a plan that meets the minimums by moves, swaps, and by opening and closing whole tasks; with pair terms too.
#pragma once

#include "../local_search.hpp"
#include "teams.hpp"

namespace muster {

class TeamSearch {
 public:
  TeamSearch(Arena& arena, const Instance& instance, const Teams& teams, Stop& stop);

  // Make the plan meet the minimums: empty tasks below theirs, then let agents join.
  void repair(Plan& plan);

  // Moves, swaps, opening and closing of tasks until none helps.
  void improve(Plan& plan);

  // Iterated local search: random changes of a few tasks, then `improve`, `rounds` times or until stopped. Keeps the best.
  void perturb(Plan& plan, Index rounds);

 private:
  bool can_leave(const Plan& plan, Index i) const;
  bool can_join(const Plan& plan, Index i, Index j) const;
  // The task that agent i, which has none, gains most by joining; -1 for none.
  Step best_join(const Plan& plan, Index i) const;
  bool move_sweep(Plan& plan);
  bool swap_sweep(Plan& plan);
  bool team_sweep(Plan& plan);
  void empty(Plan& plan, Index j);
  // Fill task j to its minimum with other tasks' agents (or, if `only_idle`, with agents without a task); false if there
  // are too few.
  bool fill(Plan& plan, Index j, bool only_idle);
  // Let agents without a task join, or make teams, as long as that pays.
  void settle(Plan& plan);

  const Instance& instance_;
  const Teams& teams_;
  Stop& stop_;
  double least_;
  Plan trial_;
  Plan current_;
  std::vector<double> gain_;
  std::vector<Index> order_;
};

}  // namespace muster
