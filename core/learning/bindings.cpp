// Bindings of the learners: muster._core.learning.
#include "bindings.hpp"

#include "learning/adam.hpp"
#include "learning/choices.hpp"
#include "learning/noise.hpp"

namespace muster {

namespace {

// Keeps the arrays alive that the decisions are views of.
struct BoundDecisions {
  Numpy<const std::int64_t, 2> assignment;
  Numpy<const float, 3> history;
  Numpy<const double, 3> contributions;
  Numpy<const double, 2> capacities;
  Numpy<const bool, 2> agent_alive;
  Numpy<const bool, 3> open;
  bool idling, exchanging;
  Numpy<const double, 2> minimums;

  Decisions decisions() const {
    return {view(assignment),  view(history), view(contributions), view(capacities),
            view(agent_alive), view(open),    idling,              exchanging,
            view(minimums)};
  }

  // Raise ValueError unless the arrays agree.
  void check() const {
    const Decisions all = decisions();
    const Index s = all.assignment.rows, n = all.assignment.columns, m = all.capacities.columns;
    const char* const message = "the arrays of the decisions do not agree";
    require_shape(all.history, {s, n, m}, message);
    require_shape(all.contributions, {s, n, m}, message);
    require_shape(all.open, {s, n, m}, message);
    require_shape(all.capacities, {s}, message);
    require_shape(all.agent_alive, {s, n}, message);
    if (all.minimums.rows > 0) require_shape(all.minimums, {s, m}, message);
    for (Index k = 0; k < s * n; ++k) require(all.assignment.data[k] < m, message);
  }

  // The decisions; ValueError if scores, or their slopes, have other shapes.
  Decisions decisions(Array3<const float> h, Array3<const float> g) const {
    const Index s = extent(assignment.shape(0)), n = extent(assignment.shape(1)), m = extent(capacities.shape(1));
    require_shape(h, {s, n, m}, "the scores of these decisions have another shape");
    if (g.layers > 0) require_shape(g, {s, m, m}, "the scores of these decisions have another shape");
    return decisions();
  }
};

void bound_fill_likelihood(const BoundDecisions& bound, Array3<const float> h, Array3<const float> g, double tau,
                           Array2<double> likelihood) {
  const Decisions decisions = bound.decisions(h, g);
  require_shape(likelihood, shape(decisions.assignment), "a likelihood for every choice");
  fill_likelihood(decisions, {h, g, tau}, likelihood);
}

double bound_share_with_moves(const BoundDecisions& bound) { return share_with_moves(bound.decisions()); }

std::tuple<double, double> bound_fill_slopes(const BoundDecisions& bound, Array3<const float> h, Array3<const float> g,
                                             double tau, Array2<const double> before, Array1<const double> advantage,
                                             double clip, double entropy, double weight, Array3<float> slope_h,
                                             Array3<float> slope_g) {
  const Decisions decisions = bound.decisions(h, g);
  const char* const message = "an advantage for every state, a likelihood for every choice, slopes for every score";
  require_shape(before, shape(decisions.assignment), message);
  require_shape(advantage, {h.layers}, message);
  require_shape(slope_h, shape(h), message);
  require_shape(slope_g, shape(g), message);
  const LossAndEntropy found =
      fill_slopes(decisions, {h, g, tau}, {before, advantage, clip, entropy}, weight, slope_h, slope_g);
  return {found.loss, found.entropy};
}

void bound_climb(Array1<const double> gradient, double rate, double weight_decay, double mean_weight,
                 double variance_weight, Array1<double> mean, Array1<double> variance, Array1<double> theta) {
  require(gradient.size == theta.size && mean.size == theta.size && variance.size == theta.size,
          "a gradient and moments for every parameter");
  climb({rate, weight_decay, mean_weight, variance_weight}, gradient, {mean, variance}, theta);
}

template <void (*draw)(Array1<std::uint64_t>, Array2<float>)>
void bound_draw(Array1<std::uint64_t> states, Array2<float> draws) {
  require(states.size == draws.rows, "a generator for every row");
  draw(states, draws);
}

}  // namespace

void bind_learning(nb::module_& module) {
  nb::class_<BoundDecisions>(module, "Decisions")
      .def(
          "__init__",
          [](BoundDecisions* self, Numpy<const std::int64_t, 2> assignment, Numpy<const float, 3> history,
             Numpy<const double, 3> contributions, Numpy<const double, 2> capacities, Numpy<const bool, 2> agent_alive,
             Numpy<const bool, 3> open, bool idling, bool exchanging, Numpy<const double, 2> minimums) {
            const BoundDecisions made{assignment,  history, contributions, capacities, agent_alive,
                                      open,        idling,  exchanging,    minimums};
            made.check();
            new (self) BoundDecisions(made);
          },
          "assignment"_a, "history"_a, "contributions"_a, "capacities"_a, "agent_alive"_a, "open"_a, "idling"_a,
          "exchanging"_a, "minimums"_a);
  bind_function(module, "fill_likelihood", bound_fill_likelihood, "decisions", "h", "g", "tau", "likelihood");
  bind_function(module, "share_with_moves", bound_share_with_moves, "decisions");
  bind_function(module, "fill_slopes", bound_fill_slopes, "decisions", "h", "g", "tau", "before", "advantage", "clip",
                "entropy", "weight", "slope_h", "slope_g");
  bind_function(module, "climb", bound_climb, "gradient", "rate", "weight_decay", "mean_weight", "variance_weight",
                "mean", "variance", "theta");
  bind_function(module, "sum_squares", sum_squares, "x");
  bind_function(module, "draw_normals", bound_draw<draw_normals>, "states", "draws");
  bind_function(module, "draw_exponentials", bound_draw<draw_exponentials>, "states", "draws");
}

}  // namespace muster
