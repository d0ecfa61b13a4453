#include "bindings.hpp"

#include "models/context.hpp"
#include "models/critic.hpp"
#include "models/elementary.hpp"
#include "models/network.hpp"

namespace muster {

namespace {

// Raise ValueError unless an array has this shape.
template <class Array>
void require_shape(const Array& array, std::initializer_list<Index> shape, const char* message) {
  std::size_t axis = 0;
  for (const Index size : shape) {
    if (extent(array.shape(axis++)) != size) throw nb::value_error(message);
  }
}

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

  void check() const {
    const Index b = extent(left_alive.shape(0)), n = extent(left_alive.shape(1)), m = extent(right_alive.shape(1));
    const char* const message = "the arrays of the pairs have shapes that do not agree";
    require_shape(right_alive, {b}, message);
    require_shape(left, {b, n}, message);
    require_shape(right, {b, m}, message);
    require_shape(pair, {b, n, m}, message);
    if (allowed.shape(0) > 0) require_shape(allowed, {b, n, m}, message);
    if (prior.shape(0) > 0) require_shape(prior, {b, n, m}, message);
    if (shared.shape(0) > 0) require_shape(shared, {b}, message);
  }
};

// What the network reads of the pairs; ValueError if they have other features, or scores of another shape.
template <class Array>
PairInputs read(const PairNetwork& network, const BoundPairs& pairs, const Array& scores,
                const In4<std::uint32_t>& gates) {
  const PairInputs inputs = pairs.inputs();
  const Index shared = inputs.shared.rows > 0 ? inputs.shared.columns : 0;
  const Index b = inputs.batch(), n = inputs.lefts(), m = inputs.rights();
  if (b > 0 && (inputs.left.columns + shared != network.lefts || inputs.right.columns != network.rights ||
                inputs.pair.columns != network.pairs || network.has_scale != (inputs.prior.layers > 0))) {
    throw nb::value_error("the network reads other features than these pairs have");
  }
  if (b % std::max<Index>(network.models, 1) != 0) throw nb::value_error("the batch is not shared out evenly");
  require_shape(scores, {b, n, m}, "the scores of these pairs have another shape");
  if (gates.is_valid()) require_shape(gates, {b, n, m, network.words()}, "the gates of these pairs have another shape");
  return inputs;
}

std::uint32_t* optional_data(const In4<std::uint32_t>& gates) { return gates.is_valid() ? gates.data() : nullptr; }

// The state arrays that a critic reads; ValueError if they are others.
CriticInputs read(const EntityCritic& critic, const In3<const float>& agents, const In3<const float>& tasks,
                  const In2<const bool>& agent_alive, const In2<const bool>& task_alive,
                  const In2<const float>& shared, const In1<float>& values) {
  const Index b = extent(agent_alive.shape(0)), features = shared.shape(0) > 0 ? extent(shared.shape(1)) : 0;
  const char* const message = "the critic reads other features than these states have";
  require_shape(agents, {b, extent(agent_alive.shape(1)), critic.nets[EntityCritic::kAgent].inputs}, message);
  require_shape(tasks, {b, extent(task_alive.shape(1)), critic.nets[EntityCritic::kTask].inputs}, message);
  require_shape(task_alive, {b}, message);
  require_shape(values, {b}, message);
  if (features > 0) require_shape(shared, {b}, message);
  if (b > 0 && 4 * critic.width + 2 + features != critic.nets[EntityCritic::kHead].inputs) throw nb::value_error(message);
  return {view(agents), view(tasks), view(agent_alive), view(task_alive), view(shared)};
}

void bind_pair_network(nb::module_& room) {
  nb::class_<BoundPairs>(room, "Pairs")
      .def(
          "__init__",
          [](BoundPairs* self, In3<const float> left, In3<const float> right, In4<const float> pair,
             In2<const bool> left_alive, In2<const bool> right_alive, In3<const bool> allowed, In3<const double> prior,
             In2<const float> shared) {
            BoundPairs pairs{left, right, pair, left_alive, right_alive, allowed, prior, shared};
            pairs.check();
            new (self) BoundPairs(pairs);
          },
          "left"_a, "right"_a, "pair"_a, "left_alive"_a, "right_alive"_a, "allowed"_a, "prior"_a, "shared"_a);
  nb::class_<PairNetwork>(room, "PairNetwork")
      .def(
          "__init__",
          [](PairNetwork* self, In2<const float> parameters, Index left, Index right, Index pair, Index hidden,
             bool has_scale) {
            const Index size = (left + right + pair + hidden + 3) * hidden + 1 + has_scale;
            if (left < 0 || right < 0 || pair < 0 || hidden < 1 || extent(parameters.shape(1)) != size) {
              throw nb::value_error("a network of these sizes has another number of parameters");
            }
            new (self) PairNetwork(view(parameters), left, right, pair, hidden, has_scale);
          },
          "parameters"_a, "left"_a, "right"_a, "pair"_a, "hidden"_a, "has_scale"_a)
      .def_prop_ro("words", &PairNetwork::words)
      .def(
          "score",
          [](const PairNetwork& self, const BoundPairs& pairs, In3<float> scores, In4<std::uint32_t> gates) {
            const PairInputs inputs = read(self, pairs, scores, gates);
            nb::gil_scoped_release release;
            self.score(inputs, 0, inputs.batch(), scores.data(), optional_data(gates));
          },
          "pairs"_a, nb::arg("scores").noconvert(), nb::arg("gates").noconvert().none())
      .def(
          "add_gradient",
          [](const PairNetwork& self, const BoundPairs& pairs, In3<const float> slopes, In4<std::uint32_t> gates,
             In1<double> gradient) {
            const PairInputs inputs = read(self, pairs, slopes, gates);
            const Index size = (self.lefts + self.rights + self.pairs + self.hidden + 3) * self.hidden + 1;
            require_shape(gradient, {size + self.has_scale}, "a gradient has an entry for every parameter");
            nb::gil_scoped_release release;
            self.add_gradient(inputs, view(slopes), optional_data(gates), gradient.data());
          },
          "pairs"_a, "slopes"_a, nb::arg("gates").noconvert().none(), nb::arg("gradient").noconvert());
}

void bind_critic(nb::module_& room) {
  nb::class_<EntityCritic>(room, "EntityCritic")
      .def(
          "__init__",
          [](EntityCritic* self, In1<const float> parameters, Index agents, Index tasks, Index shared, Index width) {
            const Index size = width * (agents + tasks + 4 * width + 2 + shared + 2 * width + 6) + 1;
            if (agents < 0 || tasks < 0 || shared < 0 || width < 1 || extent(parameters.shape(0)) != size) {
              throw nb::value_error("a critic of these sizes has another number of parameters");
            }
            new (self) EntityCritic(view(parameters), agents, tasks, shared, width);
          },
          "parameters"_a, "agents"_a, "tasks"_a, "shared"_a, "width"_a)
      .def(
          "value",
          [](const EntityCritic& self, In3<const float> agents, In3<const float> tasks, In2<const bool> agent_alive,
             In2<const bool> task_alive, In2<const float> shared, In1<float> values) {
            const CriticInputs inputs = read(self, agents, tasks, agent_alive, task_alive, shared, values);
            nb::gil_scoped_release release;
            self.value(inputs, values.data());
          },
          "agents"_a, "tasks"_a, "agent_alive"_a, "task_alive"_a, "shared"_a, nb::arg("values").noconvert())
      .def(
          "add_gradient",
          [](const EntityCritic& self, In3<const float> agents, In3<const float> tasks, In2<const bool> agent_alive,
             In2<const bool> task_alive, In2<const float> shared, In1<const float> target, In1<float> values,
             In1<double> gradient) {
            const CriticInputs inputs = read(self, agents, tasks, agent_alive, task_alive, shared, values);
            require_shape(target, {extent(values.shape(0))}, "a target for every state");
            require_shape(gradient, {self.size()}, "a gradient has an entry for every parameter");
            nb::gil_scoped_release release;
            return self.add_gradient(inputs, view(target), values.data(), gradient.data());
          },
          "agents"_a, "tasks"_a, "agent_alive"_a, "task_alive"_a, "shared"_a, "target"_a, nb::arg("values").noconvert(),
          nb::arg("gradient").noconvert());
}

void bind_context(nb::module_& room) {
  room.def(
      "fill_layer",
      [](In3<const float> x, In2<const float> weight, In1<const float> bias, bool rectified, In3<float> y) {
        const Index b = extent(x.shape(0)), n = extent(x.shape(1)), width = extent(weight.shape(1));
        require_shape(weight, {extent(x.shape(2))}, "weights for every input");
        require_shape(bias, {width}, "a bias for every output");
        require_shape(y, {b, n, width}, "the outputs have another shape");
        nb::gil_scoped_release release;
        fill_layer(view(x), view(weight), view(bias), rectified, view(y));
      },
      "x"_a, "weight"_a, "bias"_a, "rectified"_a, nb::arg("y").noconvert());
  room.def(
      "listen",
      [](In2<const float> relation, In2<const float> logit, In1<const float> pull, In3<const float> x,
         In3<const float> y, In4<const float> features, In3<const float> distance, In3<const bool> audible,
         In3<float> heard) {
        const Index b = extent(x.shape(0)), n = extent(x.shape(1)), m = extent(y.shape(1)), width = extent(x.shape(2));
        const char* const message = "the arrays of listeners and speakers have shapes that do not agree";
        require_shape(relation, {extent(features.shape(3)), width}, message);
        require_shape(logit, {extent(pull.shape(0)), width}, message);
        require_shape(y, {b, m, width}, message);
        require_shape(features, {b, n, m}, message);
        require_shape(distance, {b, n, m}, message);
        require_shape(audible, {b, n, m}, message);
        require_shape(heard, {b, n, width}, message);
        nb::gil_scoped_release release;
        listen({view(relation), view(logit), view(pull)}, view(x), view(y), {view(features), view(distance), view(audible)},
               view(heard));
      },
      "relation"_a, "logit"_a, "pull"_a, "x"_a, "y"_a, "features"_a, "distance"_a, "audible"_a,
      nb::arg("heard").noconvert());
}

// e^x in place, of an array of any shape.
void exp_in_place(nb::ndarray<float, nb::numpy, nb::c_contig, nb::device::cpu> x) {
  float* const values = x.data();
  const Index size = extent(x.size());
  for (Index k = 0; k < size; ++k) values[k] = exp_fixed(values[k]);
}

}  // namespace

void bind_models(nb::module_& room) {
  bind_pair_network(room);
  bind_critic(room);
  bind_context(room);
  room.def("exp", &exp_in_place, nb::arg("x").noconvert());
}

}  // namespace muster
