#include "previous.hpp"

#include <cmath>

#include "certificate.hpp"
#include "local_search.hpp"

namespace muster {

namespace {

// Plans whose values differ by no more than this share count as worth the same; the one with fewer changes is taken.
constexpr double kTie = 1e-12;

// Value of a plan with the penalty for agents left out, and how many agents lost the task that they had.
struct Standing {
  double value;
  Index changes = 0;
};

Standing judge_answer(const Output& out, Index b, const Instance& instance, const Array1<const Index>& previous) {
  Standing standing{out.objective[b]};
  for (Index i = 0; i < instance.n; ++i) {
    const Index agent = instance.agents[i], task = out.assignment(b, agent);
    if (task < 0) standing.value += instance.idle;
    standing.changes += previous[agent] >= 0 && task != previous[agent];
  }
  return standing;
}

// Replace the answer of row b; the bound of its instance stays.
void write_plan(const Output& out, Index b, const Plan& plan, const Instance& instance, bool certify) {
  out.objective[b] = value_of(plan, instance);
  out.bound[b] = std::max(out.bound[b], out.objective[b]);
  for (Index i = 0; i < instance.n; ++i) {
    const Index agent = instance.agents[i], j = plan.task[i];
    out.assignment(b, agent) = j >= 0 ? instance.tasks[j] : -1;
    if (j >= 0) {
      out.reason(b, agent) = kAssigned;
    } else if (certify) {
      out.reason(b, agent) = reason_of(plan, instance, i);
    }
  }
  for (Index j = 0; j < instance.m; ++j) out.loads(b, instance.tasks[j]) = plan.load[j];
}

// Take the previous plan, improved step by step if the effort allows, where it is worth more than the answer, or the same
// with fewer changes. `plan` holds as much of it as is possible.
void keep_better(Plan& plan, const Instance& instance, Search& search, const Output& out, Index b,
                 const Array1<const Index>& previous, const Settings& settings, Stop& stop) {
  if (settings.effort != kPaper) improve(plan, instance, search, true, score_scale(instance), stop);
  const Standing found = judge_answer(out, b, instance, previous);
  const Standing kept{total_value(plan, instance), changes_of(plan, instance, previous)};
  const double slack = kTie * std::max(std::abs(found.value), std::abs(kept.value));
  const bool better = kept.value > found.value + slack;
  if (!better && !(kept.value >= found.value - slack && kept.changes < found.changes)) return;
  write_plan(out, b, plan, instance, settings.certify);
  const Index status = out.status[b];
  if (status == kRounded || (better && status != kOptimal && status != kTimeLimit)) out.status[b] = kLocalOptimum;
}

}  // namespace

void load_plan(Plan& plan, const Instance& instance, const Array1<const Index>& tasks, const Array1<Index>& position) {
  clear(plan, instance);
  for (Index i = 0; i < instance.n; ++i) {
    const Index task = tasks[instance.agents[i]];
    const Index j = task >= 0 ? position[task] : -1;
    if (j >= 0 && instance.score(i, j) > -kInfinity && fits(plan.load[j], instance.use(i, j), instance.capacity[j])) {
      reassign(plan, instance, i, j);
    }
  }
}

Index changes_of(const Plan& plan, const Instance& instance, const Array1<const Index>& previous) {
  Index changes = 0;
  for (Index i = 0; i < instance.n; ++i) {
    const Index before = previous[instance.agents[i]], now = plan.task[i] >= 0 ? instance.tasks[plan.task[i]] : -1;
    changes += before >= 0 && now != before;
  }
  return changes;
}

void keep_previous(Index begin, Index end, const Problem& problem, const Settings& settings, const Output& out, Stop& stop,
                   const Array2<const Index>& previous) {
  Arena arena;
  const Index n = problem.scores.rows, m = problem.scores.columns;
  Instance instance = make_instance(arena, n, m, problem.task_scores.layers > 0);
  Plan plan = make_plan(arena, n, m);
  Search search = make_search(arena, n, m);
  const Array1<Index> position = arena.make1<Index>(m);
  for (Index b = begin; b < end; ++b) {
    if (out.status[b] == kInvalid || !fill_instance(instance, problem, b, settings.assign_all)) continue;
    std::fill_n(position.data, m, -1);
    for (Index j = 0; j < instance.m; ++j) position[instance.tasks[j]] = j;
    load_plan(plan, instance, previous.row(b), position);
    keep_better(plan, instance, search, out, b, previous.row(b), settings, stop);
  }
}

}  // namespace muster
