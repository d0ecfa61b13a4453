#include "tabu_search.hpp"

#include <algorithm>

#include "proof.hpp"

namespace muster {

namespace {

// Steps for which a task that was left is not taken again (and up to four more), and an agent that moved stays.
constexpr Index kTaskTenure = 12;
constexpr Index kAgentTenure = 5;

struct Move {
  double gain = -kInfinity;
  Index agent = -1;
  Index task = -1;
};

// When tasks and agents may be moved to or from again.
struct Tenures {
  Array1<Index> agent;  // [N]
  Array1<Index> task;   // [M]
};

// The best move of an agent on a task to another that is not tabu, or that gains more than `enough`; agent -1: none.
// `joining` [M] is what one more agent gains by each task, -infinity where none fits.
Move find_best_move(const Plan& trial, const Instance& instance, const Array1<double>& joining, const Tenures& until,
                    Index step, double enough) {
  // Few moves beat the best so far: tasks are compared with it some at a time.
  constexpr Index kBlock = 16;
  const Index m = instance.m;
  const double* const joins = joining.data;
  Move best;
  for (Index i = 0; i < instance.n; ++i) {
    const Index old = trial.task[i];
    if (old < 0 || until.agent[i] > step) continue;
    const double base = instance.pair_score(old, old) - instance.score(i, old) - trial.marginal[old];
    const double* const both = instance.pair_score.row(old).data;
    for (Index begin = 0; begin < m; begin += kBlock) {
      const Index end = std::min(m, begin + kBlock);
      if (end - begin == kBlock) {
        Index better = 0;
        for (Index k = 0; k < kBlock; ++k) better += base + joins[begin + k] - both[begin + k] > best.gain ? 1 : 0;
        if (better == 0) continue;
      }
      for (Index k = begin; k < end; ++k) {
        const double gain = base + joins[k] - both[k];
        if (gain > best.gain && k != old && (until.task[k] <= step || gain > enough)) best = {gain, i, k};
      }
    }
  }
  return best;
}

}  // namespace

bool all_alike(const Instance& instance) {
  for (Index i = 1; i < instance.n; ++i) {
    if (!are_alike(instance, i, 0)) return false;
  }
  return true;
}

void search_tabu(Plan& plan, Plan& trial, const Instance& instance, Search& search, Index steps, double scale, Stop& stop) {
  const Index n = instance.n, m = instance.m;
  const Array1<double>& joining = search.kick_gain;
  const Tenures until{search.order, search.kick_order};
  copy_plan(trial, plan, n, m);
  double value = total_value(plan, instance), best = value;
  const double least = kGainTolerance * scale;
  std::fill_n(until.agent.data, n, 0);
  std::fill_n(until.task.data, m, 0);
  for (Index step = 1; step <= steps && !stop.requested(); ++step) {
    for (Index k = 0; k < m; ++k) {
      const bool open = fits(trial.load[k], instance.use(0, k), instance.capacity[k]);
      joining[k] = open ? instance.score(0, k) + trial.marginal[k] : -kInfinity;
    }
    const Move move = find_best_move(trial, instance, joining, until, step, best + least - value);
    if (move.agent < 0) return;
    until.task[trial.task[move.agent]] = step + kTaskTenure + step % 5;
    until.agent[move.agent] = step + kAgentTenure;
    reassign(trial, instance, move.agent, move.task);
    value += move.gain;
    if (value > best + least) {
      best = value;
      copy_plan(plan, trial, n, m);
    }
  }
}

}  // namespace muster
