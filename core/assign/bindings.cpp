#include "bindings.hpp"

#include "amax.hpp"
#include "lp/linear.hpp"
#include "previous.hpp"

namespace muster {

void bind_assign(nb::module_& room) {
  nb::class_<ProblemArrays>(room, "Problem")
      .def(
          "__init__",
          [](ProblemArrays* self, In3<const double> scores, In3<const double> task_scores,
             In3<const double> contributions, In2<const double> capacities, In2<const bool> agent_alive,
             In2<const bool> task_alive, In3<const bool> allowed, bool by_load) {
            const Problem problem{muster::view(scores),      muster::view(task_scores), muster::view(contributions),
                               muster::view(capacities),  muster::view(agent_alive), muster::view(task_alive),
                               muster::view(allowed), by_load};
            new (self) ProblemArrays{scores,      task_scores, contributions, capacities,
                                     agent_alive, task_alive,  allowed,       problem};
          },
          "scores"_a, "task_scores"_a, "contributions"_a, "capacities"_a, "agent_alive"_a, "task_alive"_a, "allowed"_a,
          "by_load"_a);
  nb::class_<Settings>(room, "Settings")
      .def(
          "__init__",
          [](Settings* self, Index effort, Index steps, Index rounding, bool assign_all, Index rounds, bool certify,
             bool report_proof, bool prove) {
            new (self) Settings{effort, steps, rounding, assign_all, rounds, certify, report_proof, prove};
          },
          "effort"_a, "steps"_a, "rounding"_a, "assign_all"_a, "rounds"_a, "certify"_a, "report_proof"_a, "prove"_a);
  nb::class_<OutputArrays>(room, "Output")
      .def(
          "__init__",
          [](OutputArrays* self, In2<Index> assignment, In1<double> objective, In1<double> relaxed, In1<double> bound,
             In1<Index> status, In1<double> duality_gap, In1<double> frank_wolfe_gap, In2<double> loads,
             In2<double> prices, In2<Index> reason) {
            const Output out{muster::view(assignment), muster::view(objective),   muster::view(relaxed),
                             muster::view(bound),      muster::view(status),      muster::view(duality_gap),
                             muster::view(frank_wolfe_gap), muster::view(loads),  muster::view(prices),
                             muster::view(reason)};
            new (self) OutputArrays{assignment, objective, relaxed, bound, status, duality_gap, frank_wolfe_gap,
                                    loads,      prices,    reason,  out};
          },
          "assignment"_a.noconvert(), "objective"_a.noconvert(), "relaxed"_a.noconvert(), "bound"_a.noconvert(),
          "status"_a.noconvert(), "duality_gap"_a.noconvert(), "frank_wolfe_gap"_a.noconvert(), "loads"_a.noconvert(),
          "prices"_a.noconvert(), "reason"_a.noconvert());
  room.def(
      "solve_amax",
      [](Index begin, Index end, const ProblemArrays& problem, const Settings& settings, const OutputArrays& out,
         const In1<Index>& flag, double seconds) {
        run_stoppable(flag, seconds, [&](Stop& stop) { solve_amax(begin, end, problem.view, settings, out.view, stop); });
      },
      "begin"_a, "end"_a, "problem"_a, "settings"_a, "out"_a, "stop"_a.noconvert(), "seconds"_a,
      "Solve instances begin..end-1 by AMAX.");
  room.def(
      "solve_linear",
      [](Index begin, Index end, const ProblemArrays& problem, const Settings& settings, const OutputArrays& out,
         const In1<Index>& flag, double seconds) {
        run_stoppable(flag, seconds,
                      [&](Stop& stop) { solve_linear(begin, end, problem.view, settings, out.view, stop); });
      },
      "begin"_a, "end"_a, "problem"_a, "settings"_a, "out"_a, "stop"_a.noconvert(), "seconds"_a,
      "Solve instances begin..end-1 by LP: relax, round, prove.");
  room.def(
      "keep_previous",
      [](Index begin, Index end, const ProblemArrays& problem, const Settings& settings, const OutputArrays& out,
         const In1<Index>& flag, double seconds, const In2<const Index>& previous) {
        run_stoppable(flag, seconds, [&](Stop& stop) {
          keep_previous(begin, end, problem.view, view(previous), settings, out.view, stop);
        });
      },
      "begin"_a, "end"_a, "problem"_a, "settings"_a, "out"_a, "stop"_a.noconvert(), "seconds"_a, "previous"_a,
      "Let no answer of instances begin..end-1 be worth less than what is still possible of the previous plan.");
  bind_quad(room);
  bind_exact(room);
  bind_minimums(room);
}

}  // namespace muster
