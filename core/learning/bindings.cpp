#include "bindings.hpp"

#include "learning/adam.hpp"
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
  In2<const double> minimums;

  // The decisions; ValueError if scores, or their slopes, have other shapes.
  template <class Scores>
  Decisions decisions(const Scores& h, const Scores& g) const {
    const std::size_t states = assignment.shape(0), n = assignment.shape(1), m = capacities.shape(1);
    const auto is = [](const auto& array, std::size_t a, std::size_t b, std::size_t c) {
      return array.shape(0) == a && array.shape(1) == b && array.shape(2) == c;
    };
    if (!is(h, states, n, m) || (g.shape(0) > 0 && !is(g, states, m, m))) {
      throw nb::value_error("the scores of these decisions have another shape");
    }
    return decisions();
  }

  Decisions decisions() const {
    return {view(assignment),  view(history), view(contributions), view(capacities),
            view(agent_alive), view(open),    idling,              exchanging,
            view(minimums)};
  }
};

}  // namespace

void bind_learning(nb::module_& room) {
  nb::class_<BoundDecisions>(room, "Decisions")
      .def(
          "__init__",
          [](BoundDecisions* self, In2<const std::int64_t> assignment, In3<const float> history,
             In3<const double> contributions, In2<const double> capacities, In2<const bool> agent_alive,
             In3<const bool> open, bool idling, bool exchanging, In2<const double> minimums) {
            const std::size_t states = assignment.shape(0), n = assignment.shape(1), m = capacities.shape(1);
            const auto is = [&](const auto& array) {
              return array.shape(0) == states && array.shape(1) == n && array.shape(2) == m;
            };
            bool same = is(history) && is(contributions) && is(open) && capacities.shape(0) == states &&
                        agent_alive.shape(0) == states && agent_alive.shape(1) == n &&
                        (minimums.shape(0) == 0 || (minimums.shape(0) == states && minimums.shape(1) == m));
            for (std::size_t k = 0; k < states * n; ++k) same = same && assignment.data()[k] < extent(m);
            if (!same) throw nb::value_error("the arrays of the decisions do not agree");
            new (self) BoundDecisions{assignment,  history, contributions, capacities, agent_alive,
                                      open,        idling,  exchanging,    minimums};
          },
          "assignment"_a, "history"_a, "contributions"_a, "capacities"_a, "agent_alive"_a, "open"_a, "idling"_a,
          "exchanging"_a, "minimums"_a);
  room.def(
      "fill_likelihood",
      [](const BoundDecisions& bound, In3<const float> h, In3<const float> g, double tau, In2<double> likelihood) {
        const Decisions decisions = bound.decisions(h, g);
        if (likelihood.shape(0) != bound.assignment.shape(0) || likelihood.shape(1) != bound.assignment.shape(1)) {
          throw nb::value_error("a likelihood for every choice");
        }
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
        const Decisions decisions = bound.decisions(h, g);
        bound.decisions(slope_h, slope_g);
        if (before.shape(0) != h.shape(0) || before.shape(1) != h.shape(1) || advantage.shape(0) != h.shape(0) ||
            slope_g.shape(0) != g.shape(0)) {
          throw nb::value_error("an advantage for every state, a likelihood for every choice, slopes for every score");
        }
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
      "climb",
      [](In1<const double> gradient, double rate, double weight_decay, double mean_weight, double variance_weight,
         In1<double> mean, In1<double> variance, In1<double> theta) {
        if (gradient.shape(0) != theta.shape(0) || mean.shape(0) != theta.shape(0) || variance.shape(0) != theta.shape(0)) {
          throw nb::value_error("a gradient and moments for every parameter");
        }
        climb({rate, weight_decay, mean_weight, variance_weight}, view(gradient), {view(mean), view(variance)}, view(theta));
      },
      "gradient"_a, "rate"_a, "weight_decay"_a, "mean_weight"_a, "variance_weight"_a, nb::arg("mean").noconvert(),
      nb::arg("variance").noconvert(), nb::arg("theta").noconvert());
  room.def("sum_squares", [](In1<const double> x) { return sum_squares(view(x)); }, "x"_a);
  room.def(
      "draw_normals",
      [](In1<std::uint64_t> states, In2<float> draws) {
        if (states.shape(0) != draws.shape(0)) throw nb::value_error("a generator for every row");
        nb::gil_scoped_release release;
        draw_normals(view(states), view(draws));
      },
      nb::arg("states").noconvert(), nb::arg("draws").noconvert());
  room.def(
      "draw_exponentials",
      [](In1<std::uint64_t> states, In2<float> draws) {
        if (states.shape(0) != draws.shape(0)) throw nb::value_error("a generator for every row");
        nb::gil_scoped_release release;
        draw_exponentials(view(states), view(draws));
      },
      nb::arg("states").noconvert(), nb::arg("draws").noconvert());
}

}  // namespace muster
