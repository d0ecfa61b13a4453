#include "../bindings.hpp"

#include "concave_bound.hpp"
#include "solve.hpp"

namespace muster {

void bind_quad(nb::module_& room) {
  room.def(
      "solve_quadratic",
      [](Index begin, Index end, const ProblemArrays& problem, const Settings& settings, const OutputArrays& out,
         const In1<Index>& flag, double seconds) {
        run_stoppable(flag, seconds,
                      [&](Stop& stop) { solve_quadratic(begin, end, problem.view, settings, out.view, stop); });
      },
      "begin"_a, "end"_a, "problem"_a, "settings"_a, "out"_a, "stop"_a.noconvert(), "seconds"_a,
      "Solve instances begin..end-1 by QUAD: Frank-Wolfe, rounding, local search, proof.");
  room.def(
      "tighten_bounds",
      [](const In1<const Index>& rows, Index begin, Index end, const ProblemArrays& problem, const Settings& settings,
         const OutputArrays& out, const In1<Index>& flag, double seconds) {
        run_stoppable(flag, seconds, [&](Stop& stop) {
          tighten_bounds(view(rows), begin, end, problem.view, settings, out.view, stop);
        });
      },
      "rows"_a, "begin"_a, "end"_a, "problem"_a, "settings"_a, "out"_a, "stop"_a.noconvert(), "seconds"_a,
      "Tighten the bounds of QUAD's answers in rows[begin:end], which are not proven, by concave instances.");
}

}  // namespace muster
