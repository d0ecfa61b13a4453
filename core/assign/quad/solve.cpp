#include "solve.hpp"

#include <algorithm>
#include <cstdint>

#include "../answer.hpp"
#include "../lp/rounding.hpp"
#include "bound.hpp"
#include "tabu_search.hpp"

namespace muster {

namespace {

// Frank-Wolfe runs of each effort, and tasks tried for each kind of kick.
constexpr Index kStarts[] = {1, 1, 8};
constexpr Index kFastKicks = 3, kBestKicks = 1'000'000;
// fast ejects agents from full tasks in instances with no more pairs than this.
constexpr Index kEjectionPairs = 300;
// Steps of tabu search for each agent, where agents are alike and the instance is larger than that.
constexpr Index kTabuSteps = 8;

// Everything that solving one instance needs, reused from one instance to the next.
struct Work {
  Relaxation relaxation;
  FrankWolfe walk;
  Search search;
  Plan plan;  // the answer
  Plan candidate;
  Array1<double> bonus;  // [M] added to every agent's score of a task, for a start
  Ranking ranking;
  RelaxedValue relaxed;  // of the relaxed point behind the answer
};

Work make_work(Arena& arena, Index n, Index m, Index steps) {
  return {make_relaxation(arena, n, m), make_frank_wolfe(arena, n, m, steps), make_search(arena, n, m),
          make_plan(arena, n, m),       make_plan(arena, n, m),               arena.make1<double>(m),
          make_ranking(arena, n),       {}};
}

// Set the bonus of each task to what it earns by its own term g_jj when full, per agent (or unit), times `share`; false if
// all are 0. The linear programme values only the first agent on a task and so never fills a task for its own term.
bool set_secant_bonus(const Array1<double>& bonus, const Instance& instance, double share) {
  const double agents = static_cast<double>(instance.n);
  bool useful = false;
  for (Index j = 0; j < instance.m; ++j) {
    bonus[j] = 0.0;
    const double own = instance.task_score(j, j);
    if (!(own > 0.0)) continue;
    double total = 0.0;
    Index pairs = 0;
    for (Index i = 0; i < instance.n; ++i) {
      if (instance.use(i, j) > 0.0) {
        total += instance.use(i, j);
        ++pairs;
      }
    }
    double count = agents, each = 1.0;
    if (pairs == instance.n && total > 0.0) count = std::min(count, instance.capacity[j] * agents / total);
    if (instance.pair_terms == PairTerms::by_load) each = total / agents;
    if (count > 1.0) {
      bonus[j] = share * own * (count - 1.0) * each;
      useful = true;
    }
  }
  return useful;
}

// Make some tasks more attractive and others less, by amounts of the size of the scores; the same for the same turn.
void set_random_bonus(const Array1<double>& bonus, const Instance& instance, double scale, Index turn) {
  std::uint64_t state = static_cast<std::uint64_t>(turn);
  for (Index j = 0; j < instance.m; ++j) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    bonus[j] = scale * (static_cast<double>(state >> 33) / 1073741824.0 - 1.0);
    if (instance.pair_terms == PairTerms::by_load) {
      const double use = mean_use(instance, j);
      bonus[j] /= use > 0.0 ? use : 1.0;
    }
  }
}

// Set the bonus on the scores for the start of a turn: none, shares of the secant, then random; false if the turn would
// start where the first did.
bool choose_bonus(const Array1<double>& bonus, const Instance& instance, Index effort, Index turn, double scale) {
  const Index starts = kStarts[effort];
  if (turn > 0 && turn < starts) {
    return set_secant_bonus(bonus, instance, 2.0 * static_cast<double>(turn) / static_cast<double>(starts));
  }
  if (turn == 0) {
    std::fill_n(bonus.data, bonus.size, 0.0);
  } else {
    set_random_bonus(bonus, instance, scale, turn);
  }
  return true;
}

// Round and improve the solution under the secant bonus; false if no task has one.
bool start_from_secant(Work& work, const Instance& instance, double scale, Stop& stop) {
  if (!set_secant_bonus(work.bonus, instance, 1.0)) return false;
  solve_for_bonus(work.relaxation, instance, work.bonus, false, stop);
  read_vertex(work.relaxation, instance);
  round_point(work.plan, instance, work.relaxation.vertex, kStrict, work.ranking);
  improve(work.plan, instance, work.search, false, scale, stop);
  return true;
}

// Improve a plan as far as the effort goes within a turn.
void improve_turn(Plan& plan, Work& work, const Instance& instance, Index effort, bool tabu, double scale, Stop& stop) {
  improve(plan, instance, work.search, effort == kBest, scale, stop);
  if (effort != kBest) return;
  while (!stop.requested() && (eject(plan, instance, scale, stop) ||
                               kick(plan, instance, work.search, kBestKicks, scale, stop))) {
  }
  if (tabu && !stop.requested()) {
    search_tabu(plan, work.search.trial, instance, work.search, kTabuSteps * instance.n, scale, stop);
  }
}

// Improve the answer of `fast`.
void improve_fast(Work& work, const Instance& instance, bool tabu, double scale, Stop& stop) {
  improve(work.plan, instance, work.search, true, scale, stop);
  kick(work.plan, instance, work.search, kFastKicks, scale, stop);
  if (tabu && !stop.requested()) {
    search_tabu(work.plan, work.search.trial, instance, work.search, kTabuSteps * instance.n, scale, stop);
  }
  if (instance.n * instance.m > kEjectionPairs) return;
  while (!stop.requested() && eject(work.plan, instance, scale, stop)) {
    improve(work.plan, instance, work.search, true, scale, stop);
  }
}

// Run Frank-Wolfe from each start, round, search locally; the best assignment is left in `work.plan`.
//
// paper: one run from the linear solution, then rounding. fast: a short run, and the secant solution as it is; local
// search, a round of kicks. best: more starts, kicks until none helps, then `rounds` random starts, or until stopped.
// On the smallest instances fast leaves the rest to the proof, and the run too unless its certificate is wanted.
Status find_assignment(Work& work, const Instance& instance, const Settings& settings, Stop& stop) {
  const Index n = instance.n, m = instance.m, effort = settings.effort;
  const double scale = score_scale(instance);
  const bool small = is_small(instance, settings);
  if (effort == kFast && !settings.certify && small) {
    clear(work.plan, instance);
    complete(work.plan, instance, work.ranking);
    work.relaxed = {kNaN, kNaN, 0};
    return stop.requested() ? kTimeLimit : kLocalOptimum;
  }
  const bool tabu = effort != kPaper && n * m > kEjectionPairs && all_alike(instance);
  Status status = kLocalOptimum;
  bool found = effort == kFast && !small && start_from_secant(work, instance, scale, stop);
  for (Index turn = 0; turn < kStarts[effort] + settings.rounds; ++turn) {
    if (turn > 0 && stop.requested()) break;
    if (!choose_bonus(work.bonus, instance, effort, turn, scale)) continue;
    const Status reached =
        run_frank_wolfe(work.walk, work.relaxation, instance, work.bonus, settings.steps, scale, stop);
    write_sparse(work.walk, instance);
    Plan& plan = found ? work.candidate : work.plan;
    round_point(plan, instance, work.walk.sparse_point, effort == kPaper ? settings.rounding : kStrict, work.ranking);
    if (effort == kPaper) {
      status = reached;
    } else {
      improve_turn(plan, work, instance, effort, tabu, scale, stop);
    }
    const bool better = found && total_value(plan, instance) > total_value(work.plan, instance);
    if (turn == 0 || better) work.relaxed = work.walk.result;
    if (better) copy_plan(work.plan, plan, n, m);
    found = true;
  }
  if (effort == kFast && !small && !stop.requested()) improve_fast(work, instance, tabu, scale, stop);
  return stop.requested() ? kTimeLimit : status;
}

// Certify the answer by the upper bound `limit`; its status, which is kOptimal if the bound is reached.
Status judge(const Work& work, const Instance& instance, Status status, double limit, Certificate& certificate) {
  certificate.relaxed = work.relaxed.value;
  certificate.frank_wolfe_gap = work.relaxed.gap;
  certificate.bound = kNaN;
  if (limit < kInfinity && settle_bound(certificate, work.plan, instance, total_value(work.plan, instance), limit)) {
    status = kOptimal;
  }
  if (status == kOptimal) certificate.bound = value_of(work.plan, instance);
  return status;
}

}  // namespace

void solve_quadratic(Index begin, Index end, const Problem& problem, const Settings& settings, const Output& out,
                     Stop& stop) {
  const Index n = problem.scores.rows, m = problem.scores.columns;
  Arena arena;
  Instance instance = make_instance(arena, n, m, true);
  Work work = make_work(arena, n, m, settings.steps);
  Bounds bounds = make_bounds(arena, n, m);
  const Array1<double> prices = arena.make1<double>(m);
  for (Index b = begin; b < end; ++b) {
    if (!fill_instance(instance, problem, b, settings.assign_all)) {
      out.status[b] = kInvalid;
      continue;
    }
    std::fill_n(prices.data, m, 0.0);
    Certificate certificate;
    const Status found = find_assignment(work, instance, settings, stop);
    const double limit = bound_answer(bounds, work.plan, work.candidate, work.relaxation, work.walk, work.search,
                                      instance, settings, prices, certificate, stop);
    const Status status = judge(work, instance, found, limit, certificate);
    out.status[b] = status;
    if (!settings.certify && status != kOptimal) certificate.bound = kNaN;
    write_answer(out, b, work.plan, instance, prices, certificate);
  }
}

}  // namespace muster
