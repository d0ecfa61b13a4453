#include "../bindings.hpp"
#include "solve.hpp"

namespace muster {

void bind_routes(nb::module_& room) {
  room.def(
      "solve_batch",
      [](Index begin, Index end, const ProblemArrays& problem, const OutputArrays& out, In3<const double> end_scores,
         In3<const Index> previous, In3<Index> routes, Index iterations, Index rounds, Index power, In1<Index> stop,
         double seconds) {
        const RouteBatch batch{view(end_scores), view(previous), view(routes), iterations, rounds, power};
        {
          nb::gil_scoped_release release;
          Stop flag(flag_of(stop), seconds);
          solve_routes(begin, end, problem.view, batch, out.view, flag);
        }
        raise_pending();
      },
      "begin"_a, "end"_a, "problem"_a, "out"_a, "end_scores"_a, "previous"_a, "routes"_a.noconvert(), "iterations"_a,
      "rounds"_a, "power"_a, "stop"_a.noconvert(), "seconds"_a,
      "Routes of instances begin..end-1, written to `out` and `routes` [B, N, M].");
}

}  // namespace muster
