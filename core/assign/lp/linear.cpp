#include "linear.hpp"

#include <optional>

#include "../answer.hpp"
#include "plain.hpp"
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

// What is proven about a solved linear programme and its rounding: kOptimal if no assignment is better.
//
// `believe` says that reaching the relaxed value is enough to be believed, and need not be proven.
Status judge(const Workspace& work, bool certify, bool believe, Certificate& certificate) {
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
  if (believe || !certify) {
    reached = settle_bound(certificate, work.plan, instance, rounded, relaxed);
    // Believed, not proven.
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
  const bool believe = solved == kOptimal && !settings.report_proof;
  Certificate certificate;
  const Status status = judge(work, settings.certify, believe, certificate);
  // The value of a programme that was stopped bounds nothing, but its prices do all the same.
  out.status[b] = solved == kOptimal || (status == kOptimal && settings.certify) ? status : kTimeLimit;
  write_answer(out, b, work.plan, work.instance, work.prices, certificate);
}

}  // namespace

void solve_linear(Index begin, Index end, const Problem& problem, const Settings& settings, const Output& out, Stop& stop) {
  Arena arena;
  const Index n = problem.scores.rows, m = problem.scores.columns;
  const bool plain = is_plain(problem);
  const PlainWorkspace plain_work = plain ? make_plain_workspace(arena, n, m) : PlainWorkspace{};
  std::optional<Workspace> work;
  for (Index b = begin; b < end; ++b) {
    if (plain && solve_plain(plain_work, b, problem, settings, out, stop)) continue;
    if (!work) work = make_workspace(arena, n, m);
    solve_instance(*work, b, problem, settings, out, stop);
  }
}

}  // namespace muster
