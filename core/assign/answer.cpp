#include "answer.hpp"

namespace muster {

void write_answer(const Output& out, Index b, const Plan& plan, const Instance& instance, const Array1<double>& prices,
                  const Certificate& certificate) {
  out.objective[b] = value_of(plan, instance);
  out.relaxed[b] = certificate.relaxed;
  out.bound[b] = certificate.bound;
  out.duality_gap[b] = certificate.duality_gap;
  out.frank_wolfe_gap[b] = certificate.frank_wolfe_gap;
  for (Index i = 0; i < instance.n; ++i) {
    const Index agent = instance.agents[i], j = plan.task[i];
    if (j >= 0) out.assignment(b, agent) = instance.tasks[j];
    out.reason(b, agent) = j >= 0 ? kAssigned : reason_of(plan, instance, i);
  }
  for (Index j = 0; j < instance.m; ++j) {
    out.loads(b, instance.tasks[j]) = plan.load[j];
    out.prices(b, instance.tasks[j]) = prices[j];
  }
}

double read_answer(const Array1<Index>& found, const Instance& instance, const Output& out, Index b,
                   const Array1<Index>& position) {
  const Index m = instance.m;
  for (Index j = 0; j < m; ++j) position[instance.tasks[j]] = j;
  double value = 0.0;
  for (Index i = 0; i < instance.n; ++i) {
    const Index task = out.assignment(b, instance.agents[i]);
    found[i] = task >= 0 ? position[task] : m;
    value += task >= 0 ? instance.score(i, found[i]) : instance.idle;
  }
  return value;
}

bool leaves_out(const Plan& plan, const Instance& instance) {
  for (Index i = 0; i < instance.n; ++i) {
    if (plan.task[i] >= 0) continue;
    for (Index j = 0; j < instance.m; ++j) {
      if (instance.score(i, j) > -kInfinity && fits(0.0, instance.use(i, j), instance.capacity[j])) return true;
    }
  }
  return false;
}

void write_improved(const Array1<Index>& found, double limit, const Instance& instance, const Settings& settings,
                    const Output& out, Index b, Plan& plan, const Array1<double>& prices, Ranking& ranking, Stop& stop) {
  clear(plan, instance);
  for (Index i = 0; i < instance.n; ++i) {
    const Index j = found[i];
    if (j >= instance.m) continue;
    // It exceeds a capacity by rounding errors of the search: the answer stays as it is.
    if (!fits(plan.load[j], instance.use(i, j), instance.capacity[j])) return;
    reassign(plan, instance, i, j);
  }
  complete(plan, instance, ranking);
  double value = 0.0;
  for (Index i = 0; i < instance.n; ++i) {
    value += plan.task[i] >= 0 ? instance.score(i, plan.task[i]) : instance.idle;
  }
  Certificate certificate{out.relaxed[b], out.duality_gap[b], out.frank_wolfe_gap[b], kNaN};
  if (settle_bound(certificate, plan, instance, value, limit)) {
    out.status[b] = kOptimal;
  } else if (stop.requested()) {
    out.status[b] = kTimeLimit;
  } else {
    out.status[b] = settings.assign_all && leaves_out(plan, instance) ? kIncomplete : kLocalOptimum;
  }
  for (Index& task : out.assignment.row(b)) task = -1;
  write_answer(out, b, plan, instance, prices, certificate);
}

}  // namespace muster
