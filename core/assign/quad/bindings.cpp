#include "../bindings.hpp"

#include "concave_bound.hpp"
#include "solve.hpp"

namespace muster {

void bind_quad(nb::module_& room) {
  room.def(
      "solve_quad",
      [](Index begin, Index end, const ProblemArrays& problem, const Settings& settings, const OutputArrays& out,
         const In1<Index>& stop_flag, double seconds) {
        {
          nb::gil_scoped_release release;
          Stop stop(flag_of(stop_flag), seconds);
          solve_quad(begin, end, problem.view, settings, out.view, stop);
        }
        raise_pending();
      },
      "begin"_a, "end"_a, "problem"_a, "settings"_a, "out"_a, "stop"_a.noconvert(), "seconds"_a,
      "Solve instances begin..end-1 with task scores: write assignments and certificates to `out`.");
  room.def(
      "tighten_bounds",
      [](const In1<const Index>& rows, Index begin, Index end, const ProblemArrays& problem, const Settings& settings,
         const OutputArrays& out, const In1<Index>& stop_flag, double seconds) {
        {
          nb::gil_scoped_release release;
          Stop stop(flag_of(stop_flag), seconds);
          tighten_bounds(view(rows), begin, end, problem.view, settings, out.view, stop);
        }
        raise_pending();
      },
      "rows"_a, "begin"_a, "end"_a, "problem"_a, "settings"_a, "out"_a, "stop"_a.noconvert(), "seconds"_a,
      "Tighten the bounds of the answers in rows[begin:end], which solve_quad has not proven.");
}

}  // namespace muster
