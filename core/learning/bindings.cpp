#include "bindings.hpp"

#include "learning/choices.hpp"
#include "learning/noise.hpp"

namespace muster {

namespace {

// Keeps the arrays alive that the decisions are views of.
struct BoundDecisions {
  In2<const std::int64_t> assignment;
  In3<const float> history;
  In3<const double> contributions;
  In2<const double> capacities;
  In2<const bool> agent_alive;
  In3<const bool> open;
  bool idling, exchanging;

  Decisions decisions() const {
    return {view(assignment),  view(history), view(contributions), view(capacities),
            view(agent_alive), view(open),    idling,              exchanging};
  }
};

}  // namespace

void bind_learning(nb::module_& room) {
  nb::class_<BoundDecisions>(room, "Decisions")
      .def(
          "__init__",
          [](BoundDecisions* self, In2<const std::int64_t> assignment, In3<const float> history,
             In3<const double> contributions, In2<const double> capacities, In2<const bool> agent_alive,
             In3<const bool> open, bool idling, bool exchanging) {
            new (self) BoundDecisions{assignment, history, contributions, capacities, agent_alive, open, idling, exchanging};
          },
          "assignment"_a, "history"_a, "contributions"_a, "capacities"_a, "agent_alive"_a, "open"_a, "idling"_a,
          "exchanging"_a);
  room.def(
      "fill_likelihood",
      [](const BoundDecisions& bound, In3<const float> h, In3<const float> g, double tau, In2<double> likelihood) {
        const Decisions decisions = bound.decisions();
        nb::gil_scoped_release release;
        fill_likelihood(decisions, {view(h), view(g), tau}, view(likelihood));
      },
      "decisions"_a, "h"_a, "g"_a, "tau"_a, nb::arg("likelihood").noconvert());
  room.def(
      "share_with_moves",
      [](const BoundDecisions& bound) {
        const Decisions decisions = bound.decisions();
        nb::gil_scoped_release release;
        return share_with_moves(decisions);
      },
      "decisions"_a);
  room.def(
      "fill_slopes",
      [](const BoundDecisions& bound, In3<const float> h, In3<const float> g, double tau, In2<const double> before,
         In1<const double> advantage, double clip, double entropy, double weight, In3<float> slope_h,
         In3<float> slope_g) {
        const Decisions decisions = bound.decisions();
        LossAndEntropy found;
        {
          nb::gil_scoped_release release;
          found = fill_slopes(decisions, {view(h), view(g), tau}, {view(before), view(advantage), clip, entropy}, weight,
                              view(slope_h), view(slope_g));
        }
        return std::make_tuple(found.loss, found.entropy);
      },
      "decisions"_a, "h"_a, "g"_a, "tau"_a, "before"_a, "advantage"_a, "clip"_a, "entropy"_a, "weight"_a,
      nb::arg("slope_h").noconvert(), nb::arg("slope_g").noconvert());
  room.def(
      "draw_normals",
      [](In1<std::uint64_t> states, In2<float> draws) {
        nb::gil_scoped_release release;
        draw_normals(view(states), view(draws));
      },
      nb::arg("states").noconvert(), nb::arg("draws").noconvert());
  room.def(
      "draw_exponentials",
      [](In1<std::uint64_t> states, In2<float> draws) {
        nb::gil_scoped_release release;
        draw_exponentials(view(states), view(draws));
      },
      nb::arg("states").noconvert(), nb::arg("draws").noconvert());
}

}  // namespace muster
