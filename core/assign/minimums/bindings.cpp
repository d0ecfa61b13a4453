#include "../bindings.hpp"

#include "solve.hpp"

namespace muster {

void bind_minimums(nb::module_& room) {
  room.def(
      "meet_minimums",
      [](Index begin, Index end, const ProblemArrays& problem, const Settings& settings, const OutputArrays& out,
         const In1<Index>& flag, double seconds, const In2<const double>& minimums, const In2<const bool>& required,
         const In2<const Index>& previous, Index nodes) {
        const Needs needs{view(minimums), view(required), view(previous)};
        run_stoppable(flag, seconds,
                      [&](Stop& stop) { meet_minimums(begin, end, problem.view, needs, settings, nodes, out.view, stop); });
      },
      "begin"_a, "end"_a, "problem"_a, "settings"_a, "out"_a, "stop"_a.noconvert(), "seconds"_a, "minimums"_a,
      "required"_a, "previous"_a, "nodes"_a,
      "Let the answers of instances begin..end-1, solved without minimums, meet them by at most so many nodes.");
}

}  // namespace muster
