#include "../bindings.hpp"

#include "branch_and_bound.hpp"
#include "integer_search.hpp"

namespace muster {

void bind_exact(nb::module_& room) {
  room.def(
      "improve_batch",
      [](const In1<const Index>& rows, Index begin, Index end, const ProblemArrays& problem, const Settings& settings,
         const OutputArrays& out, const In1<Index>& flag, double seconds) {
        run_stoppable(flag, seconds, [&](Stop& stop) {
          improve_batch(view(rows), begin, end, problem.view, settings, out.view, stop);
        });
      },
      "rows"_a, "begin"_a, "end"_a, "problem"_a, "settings"_a, "out"_a, "stop"_a.noconvert(), "seconds"_a,
      "Improve the LP answers in rows[begin:end] by tabu search and path relinking.");
  room.def(
      "prove_batch",
      [](const In1<const Index>& rows, Index begin, Index end, const ProblemArrays& problem, const Settings& settings,
         const OutputArrays& out, const In1<Index>& flag, double seconds, double cells) {
        run_stoppable(flag, seconds, [&](Stop& stop) {
          prove_batch(view(rows), begin, end, problem.view, settings, cells, out.view, stop);
        });
      },
      "rows"_a, "begin"_a, "end"_a, "problem"_a, "settings"_a, "out"_a, "stop"_a.noconvert(), "seconds"_a, "cells"_a,
      "Improve or prove the LP answers in rows[begin:end] by branch and bound, with so many cells of knapsack tables.");
}

}  // namespace muster
