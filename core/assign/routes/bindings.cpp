#include "../bindings.hpp"
#include "solve.hpp"

namespace muster {

void bind_routes(nb::module_& room) {
  room.def(
      "solve_routes",
      [](Index begin, Index end, const ProblemArrays& problem, const Settings& settings, const OutputArrays& out,
         const In1<Index>& flag, double seconds, const In3<const double>& end_scores, const In3<const Index>& previous,
         const In3<Index>& routes, Index power) {
        const RouteBatch batch{view(end_scores), view(previous), view(routes), settings.steps, settings.rounds, power};
        run_stoppable(flag, seconds, [&](Stop& stop) { solve_routes(begin, end, problem.view, batch, out.view, stop); });
      },
      "begin"_a, "end"_a, "problem"_a, "settings"_a, "out"_a, "stop"_a.noconvert(), "seconds"_a, "end_scores"_a,
      "previous"_a, "routes"_a.noconvert(), "power"_a,
      "Routes of instances begin..end-1, written to `out` and `routes` [B, N, M].");
}

}  // namespace muster
