#include "bindings.hpp"

#include "amax.hpp"
#include "exact/branch_and_bound.hpp"
#include "exact/integer_search.hpp"
#include "lp/linear.hpp"
#include "minimums/solve.hpp"
#include "previous.hpp"
#include "quad/concave_bound.hpp"
#include "quad/solve.hpp"

namespace muster {

namespace {

void bind_arrays(nb::module_& room) {
  nb::class_<ProblemArrays>(room, "Problem")
      .def(nb::init<In3<const double>, In3<const double>, In3<const double>, In2<const double>, In2<const bool>,
                    In2<const bool>, In3<const bool>, bool>(),
           "scores"_a, "task_scores"_a, "contributions"_a, "capacities"_a, "agent_alive"_a, "task_alive"_a, "allowed"_a,
           "by_load"_a);
  nb::class_<Settings>(room, "Settings")
      .def(nb::init<Index, Index, Index, bool, Index, bool, bool, bool>(), "effort"_a, "steps"_a, "rounding"_a,
           "assign_all"_a, "rounds"_a, "certify"_a, "report_proof"_a, "prove"_a);
  nb::class_<OutputArrays>(room, "Output")
      .def(nb::init<In2<Index>, In2<double>, In1<Index>, In2<double>, In2<double>, In2<Index>>(),
           "assignment"_a.noconvert(), "values"_a.noconvert(), "status"_a.noconvert(), "loads"_a.noconvert(),
           "prices"_a.noconvert(), "reason"_a.noconvert());
}

}  // namespace

void bind_assign(nb::module_& room) {
  using Rows = In1<const Index>;
  bind_arrays(room);
  bind_kernel(room, "solve_amax", "Solve instances begin..end-1 by AMAX.", solve_amax);
  bind_kernel(room, "solve_linear", "Solve instances begin..end-1 by LP: relax, round, prove.", solve_linear);
  bind_kernel(room, "solve_quadratic",
              "Solve instances begin..end-1 by QUAD: Frank-Wolfe, rounding, local search, proof.", solve_quadratic);
  bind_kernel<Rows>(room, "improve_batch", "Improve the LP answers in rows[begin:end] by tabu search and path relinking.",
                    improve_batch, "rows"_a);
  bind_kernel<Rows, double>(
      room, "prove_batch",
      "Improve or prove the LP answers in rows[begin:end] by branch and bound, with so many cells of knapsack tables.",
      prove_batch, "rows"_a, "cells"_a);
  bind_kernel<Rows>(
      room, "tighten_bounds",
      "Tighten the bounds of QUAD's answers in rows[begin:end], which are not proven, by concave instances.",
      tighten_bounds, "rows"_a);
  bind_kernel<In2<const double>, In2<const bool>, In2<const Index>, Index>(
      room, "meet_minimums",
      "Let the answers of instances begin..end-1, solved without minimums, meet them by at most so many nodes.",
      meet_minimums, "minimums"_a, "required"_a, "previous"_a, "nodes"_a);
  bind_kernel<In2<const Index>>(
      room, "keep_previous",
      "Let no answer of instances begin..end-1 be worth less than what is still possible of the previous plan.",
      keep_previous, "previous"_a);
}

}  // namespace muster
