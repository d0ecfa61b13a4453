// The best plan for given open tasks, where every task gets the same from all its agents: a transport problem.
#pragma once

#include "../lp/relaxation.hpp"
#include "dual.hpp"

namespace muster {

// A task with a minimum is a column of its minimum, which pays a bonus where the task is open, and one of the rest.
class Flow {
 public:
  Flow(Arena& arena, const Teams& teams);

  // The best plan with these tasks open and closed, in `task`; tasks that are undecided get any load.
  //
  // Its value, or -infinity where an open task cannot get its minimum. `whole` says whether undecided tasks have their
  // minimum or no agent.
  double solve(const std::vector<signed char>& open, Stop& stop);

  std::vector<Index> task;    // [N] of the last plan, -1 for none
  std::vector<Index> count;   // [M]
  bool whole = false;
  // Prices of the agents after the last solve.
  void read_prices(std::vector<double>& price) const;

 private:
  const Teams& teams_;
  Instance instance_;
  Relaxation relaxation_;
  Array1<double> bonus_;
  std::vector<Index> column_task_;
  std::vector<char> column_first_;  // whether the column is its task's minimum
  double force_ = 0.0;
  bool warm_ = false;
};

}  // namespace muster
