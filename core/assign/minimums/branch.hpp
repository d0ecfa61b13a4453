// Branch and bound on which tasks are open, then (where contributions differ) on which agent takes which.
#pragma once

#include "dual.hpp"
#include "flow.hpp"

namespace muster {

class Branching {
 public:
  // `flow` is null where contributions differ. `unit`: every value is a multiple of it; 0 for none.
  Branching(const Teams& teams, Flow* flow, double unit, Stop& stop);

  // Keep a plan if it is the best so far.
  void offer(const std::vector<Index>& task, double value);

  // Improve the set of open tasks by opening, closing and exchanging tasks, trying at most `plans` plans (needs a flow).
  void exchange(Index plans);

  // Search with at most `nodes` nodes and `work` evaluated pairs; returns a bound on every plan.
  double prove(Index nodes, double work);

  // Whether the best plan's value reaches the limit.
  bool has_proven(double limit) const { return limit <= enough(); }

  std::vector<Index> best;     // [N] -1 for none
  double value = -kInfinity;   // with all penalties
  Dual root;                   // best prices without decisions
  double relaxed = kInfinity;  // bound of the root

 private:
  double node(const Dual& parent, Index depth);
  double branch_on_task(const Dual& dual, const std::vector<double>& share, Index depth);
  double branch_on_agent(const Dual& dual, Index depth);
  double bound_by_flow(Dual& dual, bool& done);
  void round(const Dual& dual);
  bool is_active(Index e, Index j) const;
  // Reset the prices of agents without any pair left.
  void release_stranded(Dual& dual) const;
  double enough() const;
  void take_steps(Dual& dual, Index steps, std::vector<double>& share);
  bool try_open(const std::vector<signed char>& open);

  const Teams& teams_;
  Flow* flow_;
  double unit_;
  Stop& stop_;
  Decisions decisions_;
  Index nodes_ = 0;
  Index plans_ = 0;
  double work_ = 0.0;
};

}  // namespace muster
