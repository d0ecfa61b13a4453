#include "bindings.hpp"

#include "models/context.hpp"
#include "models/critic.hpp"
#include "models/network.hpp"

namespace muster {

namespace {

// Keeps the arrays alive that the inputs are views of.
struct BoundPairs {
  In3<const float> left, right;
  In4<const float> pair;
  In2<const bool> left_alive, right_alive;
  In3<const bool> allowed;
  In3<const double> prior;
  In2<const float> shared;

  PairInputs inputs() const {
    return {view(left),        view(right),   view(pair),  view(left_alive),
            view(right_alive), view(allowed), view(prior), view(shared)};
  }
};

std::uint32_t* optional_data(const In4<std::uint32_t>& gates) { return gates.is_valid() ? gates.data() : nullptr; }

}  // namespace

void bind_models(nb::module_& room) {
  nb::class_<BoundPairs>(room, "Pairs")
      .def(
          "__init__",
          [](BoundPairs* self, In3<const float> left, In3<const float> right, In4<const float> pair,
             In2<const bool> left_alive, In2<const bool> right_alive, In3<const bool> allowed, In3<const double> prior,
             In2<const float> shared) {
            new (self) BoundPairs{left, right, pair, left_alive, right_alive, allowed, prior, shared};
          },
          "left"_a, "right"_a, "pair"_a, "left_alive"_a, "right_alive"_a, "allowed"_a, "prior"_a, "shared"_a);

  nb::class_<PairNetwork>(room, "PairNetwork")
      .def(
          "__init__",
          [](PairNetwork* self, In2<const float> parameters, Index left, Index right, Index pair, Index hidden,
             bool has_scale) { new (self) PairNetwork(view(parameters), left, right, pair, hidden, has_scale); },
          "parameters"_a, "left"_a, "right"_a, "pair"_a, "hidden"_a, "has_scale"_a)
      .def_prop_ro("words", &PairNetwork::words)
      .def(
          "score",
          [](const PairNetwork& self, const BoundPairs& pairs, Index begin, Index end, In3<float> scores,
             In4<std::uint32_t> gates) {
            const PairInputs inputs = pairs.inputs();
            nb::gil_scoped_release release;
            self.score(inputs, begin, end, scores.data(), optional_data(gates));
          },
          "pairs"_a, "begin"_a, "end"_a, nb::arg("scores").noconvert(), nb::arg("gates").noconvert().none())
      .def(
          "add_gradient",
          [](const PairNetwork& self, const BoundPairs& pairs, In3<const float> slope, In4<std::uint32_t> gates,
             In1<double> gradient) {
            const PairInputs inputs = pairs.inputs();
            nb::gil_scoped_release release;
            self.add_gradient(inputs, view(slope), optional_data(gates), gradient.data());
          },
          "pairs"_a, "slope"_a, nb::arg("gates").noconvert().none(), nb::arg("gradient").noconvert())
      .def(
          "add_likelihood_gradient",
          [](const PairNetwork& self, const BoundPairs& pairs, In3<const float> old, In3<const float> played,
             In1<const float> advantage, float sigma, In1<double> gradient) {
            const PairInputs inputs = pairs.inputs();
            nb::gil_scoped_release release;
            return self.add_likelihood_gradient(inputs, view(old), view(played), view(advantage), sigma,
                                                gradient.data());
          },
          "pairs"_a, "old"_a, "played"_a, "advantage"_a, "sigma"_a, nb::arg("gradient").noconvert());

  nb::class_<EntityCritic>(room, "EntityCritic")
      .def(
          "__init__",
          [](EntityCritic* self, In1<const float> parameters, Index agents, Index tasks, Index shared, Index width) {
            new (self) EntityCritic(view(parameters), agents, tasks, shared, width);
          },
          "parameters"_a, "agents"_a, "tasks"_a, "shared"_a, "width"_a)
      .def(
          "value",
          [](const EntityCritic& self, In3<const float> agents, In3<const float> tasks, In2<const bool> agent_alive,
             In2<const bool> task_alive, In2<const float> shared, In1<float> values) {
            const CriticInputs inputs{view(agents), view(tasks), view(agent_alive), view(task_alive), view(shared)};
            nb::gil_scoped_release release;
            self.value(inputs, values.data());
          },
          "agents"_a, "tasks"_a, "agent_alive"_a, "task_alive"_a, "shared"_a, nb::arg("values").noconvert())
      .def(
          "add_gradient",
          [](const EntityCritic& self, In3<const float> agents, In3<const float> tasks, In2<const bool> agent_alive,
             In2<const bool> task_alive, In2<const float> shared, In1<const float> target, In1<float> values,
             In1<double> gradient) {
            const CriticInputs inputs{view(agents), view(tasks), view(agent_alive), view(task_alive), view(shared)};
            nb::gil_scoped_release release;
            return self.add_gradient(inputs, view(target), values.data(), gradient.data());
          },
          "agents"_a, "tasks"_a, "agent_alive"_a, "task_alive"_a, "shared"_a, "target"_a, nb::arg("values").noconvert(),
          nb::arg("gradient").noconvert());

  room.def(
      "fill_layer",
      [](In3<const float> x, In2<const float> weight, In1<const float> bias, bool rectified, In3<float> y) {
        nb::gil_scoped_release release;
        fill_layer(view(x), view(weight), view(bias), rectified, view(y));
      },
      "x"_a, "weight"_a, "bias"_a, "rectified"_a, nb::arg("y").noconvert());
  room.def(
      "listen",
      [](In2<const float> relation, In2<const float> logit, In1<const float> pull, In3<const float> x,
         In3<const float> y, In4<const float> features, In3<const float> distance, In3<const bool> audible,
         In3<float> heard) {
        nb::gil_scoped_release release;
        listen({view(relation), view(logit), view(pull)}, view(x), view(y), {view(features), view(distance), view(audible)},
               view(heard));
      },
      "relation"_a, "logit"_a, "pull"_a, "x"_a, "y"_a, "features"_a, "distance"_a, "audible"_a,
      nb::arg("heard").noconvert());
}

}  // namespace muster
