#include "linear.hpp"

#include <optional>

#include "../answer.hpp"
#include "jonker_volgenant.hpp"
#include "rounding.hpp"

namespace muster {

namespace {

// Everything that solving one instance needs, reused from one instance to the next.
struct Workspace {
  Instance instance;
  Relaxation relaxation;
  Plan plan;
  Ranking ranking;
  Array1<double> bonus;  // [M] zeros: nothing is added to the scores
  Array1<double> prices;
};

// Certificate of a solved linear programme and its rounding: kOptimal if no assignment is better.
//
// With `trust_relaxed` a rounding that reaches the relaxed value counts as optimal without a proof by prices.
Status certify_rounding(const Workspace& work, bool certify, bool trust_relaxed, Certificate& certificate) {
  const Instance& instance = work.instance;
  const Point& point = work.relaxation.vertex;
  const double idle = instance.idle, relaxed = primal_value(work.relaxation, instance, work.bonus);
  double left_out = 0.0, rounded = 0.0;
  for (Index i = 0; i < instance.n; ++i) {
    left_out += 1.0;
    for (Index k = point.first[i]; k < point.first[i + 1]; ++k) left_out -= point.value[k];
    rounded += work.plan.task[i] >= 0 ? instance.score(i, work.plan.task[i]) : idle;
  }
  certificate = {relaxed - idle * left_out, kNaN, kNaN, kNaN};
  bool reached = false;
  if (trust_relaxed || !certify) {
    reached = settle_bound(certificate, work.plan, instance, rounded, relaxed);
    certificate.bound = kNaN;
  }
  if (certify && !reached) {
    const double limit = set_prices(work.relaxation, instance, work.bonus, work.prices);
    certificate.duality_gap = limit - relaxed;
    reached = settle_bound(certificate, work.plan, instance, rounded, limit);
  }
  return reached ? kOptimal : kRounded;
}

Workspace make_workspace(Arena& arena, Index n, Index m) {
  return {make_instance(arena, n, m, false), make_relaxation(arena, n, m), make_plan(arena, n, m),
          make_ranking(arena, n),            arena.zeros1<double>(m),      arena.make1<double>(m)};
}

void solve_instance(Workspace& work, Index b, const Problem& problem, const Settings& settings, const Output& out,
                    Stop& stop) {
  if (!fill_instance(work.instance, problem, b, settings.assign_all)) {
    out.status[b] = kInvalid;
    return;
  }
  const double scale = set_profits(work.relaxation, work.instance, work.bonus);
  const Status solved = maximise(work.relaxation, work.instance, scale, false, stop);
  std::fill_n(work.prices.data, work.prices.size, 0.0);
  read_vertex(work.relaxation, work.instance);
  round_point(work.plan, work.instance, work.relaxation.vertex, settings.rounding, work.ranking);
  const bool trust_relaxed = solved == kOptimal && !settings.report_proof;
  Certificate certificate;
  const Status status = certify_rounding(work, settings.certify, trust_relaxed, certificate);
  // The value of a programme that was cut short is no bound, but the dual value of its prices is.
  out.status[b] = solved == kOptimal || (status == kOptimal && settings.certify) ? status : kTimeLimit;
  write_answer(out, b, work.plan, work.instance, work.prices, certificate);
}

}  // namespace

void solve_linear(Index begin, Index end, const Problem& problem, const Settings& settings, const Output& out, Stop& stop) {
  Arena arena;
  const Index n = problem.scores.rows, m = problem.scores.columns;
  const bool is_assignment = is_linear_assignment(problem);
  const JonkerVolgenant augmenting = is_assignment ? make_jonker_volgenant(arena, n, m) : JonkerVolgenant{};
  std::optional<Workspace> work;
  for (Index b = begin; b < end; ++b) {
    if (is_assignment && solve_by_jonker_volgenant(augmenting, b, problem, settings, out, stop)) continue;
    if (!work) work = make_workspace(arena, n, m);
    solve_instance(*work, b, problem, settings, out, stop);
  }
}

}  // namespace muster
