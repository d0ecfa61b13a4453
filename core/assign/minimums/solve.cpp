#include "solve.hpp"

#include <cmath>
#include <optional>

#include "../answer.hpp"
#include "../lp/integrality.hpp"
#include "../previous.hpp"
#include "branch.hpp"
#include "search.hpp"

namespace muster {

namespace {

// Pairs that the dual's steps at the first nodes may evaluate.
constexpr double kPairWork = 3e7;
// Nodes of branch and bound before the local search is perturbed.
constexpr Index kFirstNodes = 30;
// Plans with other open tasks that an effort tries, times the size of the instance.
constexpr double kPlanWork[] = {4e6, 4e6, 1e8};
// Rounds of random changes where contributions differ or tasks have pair terms.
constexpr Index kPerturbations[] = {0, 12, 400};
// QUAD is solved by enumeration up to this many plans.
constexpr double kEnumerated = 3e5;

// Bounds of an instance that was solved.
struct Found {
  double limit = kInfinity;  // on the value of any plan, with all penalties
  double relaxed = kNaN;
  std::vector<double> price;  // [N] of the agents, empty where there are none
};

void put(Plan& plan, const Instance& instance, const std::vector<Index>& task) {
  clear(plan, instance);
  for (Index i = 0; i < instance.n; ++i) {
    if (task[i] >= 0) reassign(plan, instance, i, task[i]);
  }
}

std::vector<Index> tasks_of(const Plan& plan, Index n) { return {plan.task.data, plan.task.data + n}; }

// The prices of agents that follow from prices of capacity.
void price_agents(std::vector<double>& price, const Teams& teams, const Instance& instance, const Output& out, Index b) {
  for (Index j = 0; j < teams.m; ++j) {
    const double own = out.prices(b, instance.tasks[j]);
    for (Index e = teams.first[j]; e < teams.first[j + 1]; ++e) {
      double& most = price[teams.agent[e]];
      most = std::max(most, teams.score[e] - teams.use[e] * own);
    }
  }
}

Found solve_scores(Plan& plan, Arena& arena, const Instance& instance, const Teams& teams, const Settings& settings,
                   Index nodes, const Output& out, Index b, Stop& stop) {
  bool required = false;
  for (const double empty : teams.empty) required |= empty < 0.0;
  const double unit = teams.idle == 0.0 && !required ? integrality_of(instance) : 0.0;
  std::optional<Flow> flow;
  if (teams.uniform) flow.emplace(arena, teams);
  Branching branching(teams, flow ? &*flow : nullptr, unit, stop);
  TeamSearch search(arena, instance, teams, stop);
  search.repair(plan);
  branching.offer(tasks_of(plan, instance.n), team_value(plan, instance, teams));
  if (flow) {
    const Decisions free = make_decisions(teams);
    flow->solve(free.open, stop);
    flow->read_prices(branching.root.price);
    evaluate(branching.root, teams, free);
    const double size = static_cast<double>((instance.n + 1) * (instance.m + 1));
    branching.exchange(static_cast<Index>(std::min(1000.0, 4.0 + kPlanWork[settings.effort] / size)));
  } else {
    price_agents(branching.root.price, teams, instance, out, b);
    search.improve(plan);
    branching.offer(tasks_of(plan, instance.n), team_value(plan, instance, teams));
  }
  double limit = branching.prove(std::min(nodes, kFirstNodes), kPairWork);
  if (!flow && !branching.has_proven(limit)) {
    put(plan, instance, branching.best);
    search.perturb(plan, kPerturbations[settings.effort]);
    branching.offer(tasks_of(plan, instance.n), team_value(plan, instance, teams));
  }
  if (nodes > kFirstNodes && !branching.has_proven(limit)) {
    limit = branching.prove(nodes, 1e3 * kPairWork * static_cast<double>(nodes));
  }
  put(plan, instance, branching.best);
  return {limit, branching.relaxed, branching.root.price};
}

// Finds the best plan by enumeration, one agent after the other; `run` is false where there are too many plans.
class Enumeration {
 public:
  Enumeration(const Instance& instance, const Teams& teams, Plan& plan, Plan& best, double value, Stop& stop)
      : instance_(instance), teams_(teams), plan_(plan), best_(best), value_(value), stop_(stop) {}

  bool run() {
    double plans = 1.0;
    for (Index i = 0; i < instance_.n; ++i) {
      Index choices = 1;
      for (Index j = 0; j < instance_.m; ++j) choices += instance_.score(i, j) > -kInfinity;
      plans *= static_cast<double>(choices);
    }
    if (plans > kEnumerated) return false;
    clear(plan_, instance_);
    visit(0);
    return !stopped_;
  }

 private:
  void visit(Index i) {
    if (stopped_) return;
    if (i == instance_.n) {
      stopped_ = stop_.requested();
      if (!meets_minimums(plan_, teams_)) return;
      const double worth = team_value(plan_, instance_, teams_);
      if (worth > value_) {
        value_ = worth;
        copy_plan(best_, plan_, instance_.n, instance_.m);
      }
      return;
    }
    for (Index j = 0; j < instance_.m; ++j) {
      if (instance_.score(i, j) == -kInfinity || !fits(plan_.load[j], instance_.use(i, j), instance_.capacity[j])) continue;
      reassign(plan_, instance_, i, j);
      visit(i + 1);
      reassign(plan_, instance_, i, -1);
    }
    visit(i + 1);
  }

  const Instance& instance_;
  const Teams& teams_;
  Plan& plan_;
  Plan& best_;
  double value_;
  Stop& stop_;
  bool stopped_ = false;
};

Found solve_pairs(Plan& plan, Arena& arena, const Instance& instance, const Teams& teams, const Settings& settings,
                  Index nodes, const Output& out, Index b, Stop& stop) {
  TeamSearch search(arena, instance, teams, stop);
  Plan other = make_plan(arena, instance.n, instance.m);
  search.repair(plan);
  search.improve(plan);
  clear(other, instance);
  search.repair(other);
  search.improve(other);
  if (team_value(other, instance, teams) > team_value(plan, instance, teams)) copy_plan(plan, other, instance.n, instance.m);
  Found found;
  found.relaxed = out.relaxed[b];
  if (settings.effort != kPaper) {
    Plan work = make_plan(arena, instance.n, instance.m);
    if (Enumeration(instance, teams, work, plan, team_value(plan, instance, teams), stop).run()) {
      found.limit = team_value(plan, instance, teams);
      return found;
    }
  }
  // With a time limit, all of it.
  search.perturb(plan, settings.effort == kBest && settings.rounds > 1000 ? nodes : kPerturbations[settings.effort]);
  if (instance.idle == 0.0 && !std::isnan(out.bound[b])) found.limit = out.bound[b];
  return found;
}

Reason team_reason(const Plan& plan, const Instance& instance, const Teams& teams, Index i) {
  bool below = teams.blocked[i], wanted = false;
  for (Index j = 0; j < instance.m; ++j) {
    if (!(instance.score(i, j) > 0.0 || join_gain(plan, instance, i, j) > instance.idle)) continue;
    wanted = true;
    if (!fits(plan.load[j], instance.use(i, j), instance.capacity[j])) continue;
    if (reaches(plan.load[j] + instance.use(i, j), teams.least[j])) return kBetterLeftOut;
    below = true;
  }
  return below ? kBelowMinimum : wanted ? kNoCapacity : kNegativeScores;
}

// The last arguments of `meet_minimums`.
struct Needs {
  Array2<const double> minimums;
  Array2<const bool> required;
  Array2<const Index> previous;
};

struct Work {
  Instance instance;
  Plan plan;
  Plan kept;
  Array1<double> prices;
  Array1<Index> position;
};

void write(Work& work, const Teams& teams, const Found& found, const Settings& settings, const Output& out, Index b,
           Stop& stop) {
  const Instance& instance = work.instance;
  const double value = team_value(work.plan, instance, teams), own = value_of(work.plan, instance);
  const bool reached = value >= found.limit - 1e-9 * std::max(std::abs(found.limit), std::abs(value));
  const bool whole = value == own;  // no penalty in it
  Certificate certificate{whole ? found.relaxed : kNaN, kNaN, kNaN, kNaN};
  if (reached) {
    certificate.bound = own;
  } else if (whole && found.limit < kInfinity) {
    certificate.bound = std::max(own, found.limit);
  }
  std::fill_n(work.prices.data, work.prices.size, 0.0);
  if (!found.price.empty()) {
    Dual dual = make_dual(teams);
    dual.price = found.price;
    evaluate(dual, teams, make_decisions(teams));
    for (Index j = 0; j < instance.m; ++j) {
      const double worth = std::max(0.0, dual.team[j]), capacity = teams.most[j];
      work.prices[j] = capacity > 0.0 && capacity < kInfinity ? worth / capacity : 0.0;
    }
  }
  for (Index& task : out.assignment.row(b)) task = -1;
  write_answer(out, b, work.plan, instance, work.prices, certificate);
  for (Index i = 0; i < instance.n; ++i) {
    if (work.plan.task[i] < 0) out.reason(b, instance.agents[i]) = team_reason(work.plan, instance, teams, i);
  }
  const bool left_out = settings.assign_all && leaves_out(work.plan, instance);
  out.status[b] = reached ? kOptimal : stop.requested() ? kTimeLimit : left_out ? kIncomplete : kLocalOptimum;
}

void solve_instance(Work& work, Index b, const Problem& problem, const Needs& needs, const Settings& settings, Index nodes,
                    const Output& out, Stop& stop) {
  Instance& instance = work.instance;
  if (out.status[b] == kInvalid || !fill_instance(instance, problem, b, settings.assign_all)) return;
  const Teams teams = read_teams(instance, needs.minimums.row(b), needs.required.row(b));
  std::fill_n(work.position.data, work.position.size, -1);
  for (Index j = 0; j < instance.m; ++j) work.position[instance.tasks[j]] = j;
  const auto load = [&](Plan& plan, const Index* tasks) {
    load_plan(plan, instance, Array1<const Index>{tasks, problem.scores.rows}, work.position);
  };
  load(work.plan, out.assignment.row(b).data);
  const double given = total_value(work.plan, instance);
  const bool meets = meets_minimums(work.plan, teams) && team_value(work.plan, instance, teams) == given;
  bool same = true;
  for (Index i = 0; i < instance.n; ++i) same &= (work.plan.task[i] >= 0) == (out.assignment(b, instance.agents[i]) >= 0);
  const bool has_previous = needs.previous.rows > 0;
  if (out.status[b] == kOptimal && meets && same && !has_previous) return;
  Arena arena;
  Found found;
  if (out.status[b] == kOptimal && meets && same) {
    found = {given, out.relaxed[b], {}};
  } else {
    const auto solve = instance.pair_terms == PairTerms::none ? solve_scores : solve_pairs;
    found = solve(work.plan, arena, instance, teams, settings, nodes, out, b, stop);
  }
  if (has_previous) {
    load(work.kept, needs.previous.row(b).data);
    TeamSearch search(arena, instance, teams, stop);
    search.repair(work.kept);
    if (settings.effort != kPaper) search.improve(work.kept);
    const double old = team_value(work.kept, instance, teams), now = team_value(work.plan, instance, teams);
    const double slack = 1e-12 * std::max(std::abs(old), std::abs(now));
    const auto previous = needs.previous.row(b);
    if (old > now + slack || (old >= now - slack && changes_of(work.kept, instance, previous) <
                                                        changes_of(work.plan, instance, previous))) {
      copy_plan(work.plan, work.kept, instance.n, instance.m);
    }
  }
  write(work, teams, found, settings, out, b, stop);
}

}  // namespace

void meet_minimums(Index begin, Index end, const Problem& problem, const Settings& settings, const Output& out, Stop& stop,
                   const Array2<const double>& minimums, const Array2<const bool>& required,
                   const Array2<const Index>& previous, Index nodes) {
  const Needs needs{minimums, required, previous};
  Arena arena;
  const Index n = problem.scores.rows, m = problem.scores.columns;
  Work work{make_instance(arena, n, m, problem.task_scores.layers > 0), make_plan(arena, n, m), make_plan(arena, n, m),
            arena.zeros1<double>(m), arena.make1<Index>(m)};
  for (Index b = begin; b < end; ++b) solve_instance(work, b, problem, needs, settings, nodes, out, stop);
}

}  // namespace muster
