// Bindings of the solver on dense batches: muster._core.assign.
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

void bind_assign(nb::module_& module) {
  nb::class_<ProblemArrays>(module, "Problem")
      .def(nb::init<Numpy<const double, 3>, Numpy<const double, 3>, Numpy<const double, 3>, Numpy<const double, 2>,
                    Numpy<const bool, 2>, Numpy<const bool, 2>, Numpy<const bool, 3>, bool>(),
           "scores"_a, "task_scores"_a, "contributions"_a, "capacities"_a, "agent_alive"_a, "task_alive"_a, "allowed"_a,
           "by_load"_a);
  nb::class_<Settings>(module, "Settings")
      .def(nb::init<Index, Index, Index, bool, Index, bool, bool, bool>(), "effort"_a, "steps"_a, "rounding"_a,
           "assign_all"_a, "rounds"_a, "certify"_a, "report_proof"_a, "prove"_a);
  nb::class_<OutputArrays>(module, "Output")
      .def(nb::init<Numpy<Index, 2>, Numpy<double, 2>, Numpy<Index, 1>, Numpy<double, 2>, Numpy<double, 2>, Numpy<Index, 2>>(),
           "assignment"_a.noconvert(), "values"_a.noconvert(), "status"_a.noconvert(), "loads"_a.noconvert(),
           "prices"_a.noconvert(), "reason"_a.noconvert());
  bind_kernel(module, "solve_amax", solve_amax);
  bind_kernel(module, "solve_linear", solve_linear);
  bind_kernel(module, "solve_quadratic", solve_quadratic);
  bind_kernel(module, "improve_batch", improve_batch, "rows");
  bind_kernel(module, "prove_batch", prove_batch, "rows", "cells");
  bind_kernel(module, "tighten_bounds", tighten_bounds, "rows");
  bind_kernel(module, "meet_minimums", meet_minimums, "minimums", "required", "previous", "nodes");
  bind_kernel(module, "keep_previous", keep_previous, "previous");
}

}  // namespace muster
