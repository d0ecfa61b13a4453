// Bindings of the scoring models and the critic: muster._core.models.
#include "bindings.hpp"

#include "models/context.hpp"
#include "models/critic.hpp"
#include "models/elementary.hpp"
#include "models/network.hpp"

namespace muster {

namespace {

using Gates = std::optional<Array4<std::uint32_t>>;

// Keeps the arrays alive that the inputs are views of.
struct BoundPairs {
  Numpy<const float, 3> left, right;
  Numpy<const float, 4> pair;
  Numpy<const bool, 2> left_alive, right_alive;
  Numpy<const bool, 3> allowed;
  Numpy<const double, 3> prior;
  Numpy<const float, 2> shared;

  PairInputs inputs() const {
    return {view(left),        view(right),   view(pair),  view(left_alive),
            view(right_alive), view(allowed), view(prior), view(shared)};
  }

  void check() const {
    const PairInputs all = inputs();
    const Index b = all.batch(), n = all.lefts(), m = all.rights();
    const char* const message = "the arrays of the pairs have shapes that do not agree";
    require_shape(all.right_alive, {b}, message);
    require_shape(all.left, {b, n}, message);
    require_shape(all.right, {b, m}, message);
    require_shape(all.pair, {b, n, m}, message);
    if (all.allowed.layers > 0) require_shape(all.allowed, {b, n, m}, message);
    if (all.prior.layers > 0) require_shape(all.prior, {b, n, m}, message);
    if (all.shared.rows > 0) require_shape(all.shared, {b}, message);
  }
};

// The inputs of a network; ValueError if they have other features than it reads, or scores and gates of another shape.
template <class Scores>
PairInputs read(const PairNetwork& network, const BoundPairs& pairs, const Scores& scores, const Gates& gates) {
  const PairInputs inputs = pairs.inputs();
  const Index shared = inputs.shared.rows > 0 ? inputs.shared.columns : 0;
  const Index b = inputs.batch(), n = inputs.lefts(), m = inputs.rights();
  require(b == 0 || (inputs.left.columns + shared == network.lefts && inputs.right.columns == network.rights &&
                     inputs.pair.columns == network.pairs && network.has_scale == (inputs.prior.layers > 0)),
          "the network reads other features than these pairs have");
  require(b % std::max<Index>(network.models, 1) == 0, "the batch is not shared out evenly");
  require_shape(scores, {b, n, m}, "the scores of these pairs have another shape");
  if (gates) require_shape(*gates, {b, n, m, network.words()}, "the gates of these pairs have another shape");
  return inputs;
}

void score_pairs(const PairNetwork& network, const BoundPairs& pairs, Array3<float> scores, Gates gates) {
  network.score(read(network, pairs, scores, gates), scores.data, gates ? gates->data : nullptr);
}

void add_pair_gradient(const PairNetwork& network, const BoundPairs& pairs, Array3<const float> slopes, Gates gates,
                       Array1<double> gradient) {
  const PairInputs inputs = read(network, pairs, slopes, gates);
  const Index size = (network.lefts + network.rights + network.pairs + network.hidden + 3) * network.hidden + 1;
  require_shape(gradient, {size + network.has_scale}, "a gradient has an entry for every parameter");
  network.add_gradient(inputs, slopes, gates ? gates->data : nullptr, gradient.data);
}

// The inputs of a critic; ValueError if they have other features than it reads.
CriticInputs read(const EntityCritic& critic, Array3<const float> agents, Array3<const float> tasks,
                  Array2<const bool> agent_alive, Array2<const bool> task_alive, Array2<const float> shared,
                  Array1<float> values) {
  const Index b = agent_alive.rows, features = shared.rows > 0 ? shared.columns : 0;
  const char* const message = "the critic reads other features than these states have";
  require_shape(agents, {b, agent_alive.columns, critic.nets[EntityCritic::kAgent].inputs}, message);
  require_shape(tasks, {b, task_alive.columns, critic.nets[EntityCritic::kTask].inputs}, message);
  require_shape(task_alive, {b}, message);
  require_shape(values, {b}, message);
  if (features > 0) require_shape(shared, {b}, message);
  require(b == 0 || 4 * critic.width + 2 + features == critic.nets[EntityCritic::kHead].inputs, message);
  return {agents, tasks, agent_alive, task_alive, shared};
}

void fill_values(const EntityCritic& critic, Array3<const float> agents, Array3<const float> tasks,
                 Array2<const bool> agent_alive, Array2<const bool> task_alive, Array2<const float> shared,
                 Array1<float> values) {
  critic.value(read(critic, agents, tasks, agent_alive, task_alive, shared, values), values.data);
}

double add_critic_gradient(const EntityCritic& critic, Array3<const float> agents, Array3<const float> tasks,
                           Array2<const bool> agent_alive, Array2<const bool> task_alive, Array2<const float> shared,
                           Array1<const float> target, Array1<float> values, Array1<double> gradient) {
  const CriticInputs inputs = read(critic, agents, tasks, agent_alive, task_alive, shared, values);
  require_shape(target, {values.size}, "a target for every state");
  require_shape(gradient, {critic.size()}, "a gradient has an entry for every parameter");
  return critic.add_gradient(inputs, target, values.data, gradient.data);
}

void bound_fill_layer(Array3<const float> x, Array2<const float> weight, Array1<const float> bias, bool rectified,
                      Array3<float> y) {
  require_shape(weight, {x.columns}, "weights for every input");
  require_shape(bias, {weight.columns}, "a bias for every output");
  require_shape(y, {x.layers, x.rows, weight.columns}, "the outputs have another shape");
  fill_layer(x, weight, bias, rectified, y);
}

void bound_listen(Array2<const float> relation, Array2<const float> logit, Array1<const float> pull,
                  Array3<const float> x, Array3<const float> y, Array4<const float> features,
                  Array3<const float> distance, Array3<const bool> audible, Array3<float> heard) {
  const Index b = x.layers, n = x.rows, m = y.rows, width = x.columns;
  const char* const message = "the arrays of listeners and speakers have shapes that do not agree";
  require_shape(relation, {features.columns, width}, message);
  require_shape(logit, {pull.size, width}, message);
  require_shape(y, {b, m, width}, message);
  require_shape(features, {b, n, m}, message);
  require_shape(distance, {b, n, m}, message);
  require_shape(audible, {b, n, m}, message);
  require_shape(heard, {b, n, width}, message);
  listen({relation, logit, pull}, x, y, {features, distance, audible}, heard);
}

void bind_pair_network(nb::module_& module) {
  nb::class_<BoundPairs>(module, "Pairs")
      .def(
          "__init__",
          [](BoundPairs* self, Numpy<const float, 3> left, Numpy<const float, 3> right, Numpy<const float, 4> pair,
             Numpy<const bool, 2> left_alive, Numpy<const bool, 2> right_alive, Numpy<const bool, 3> allowed,
             Numpy<const double, 3> prior, Numpy<const float, 2> shared) {
            const BoundPairs made{left, right, pair, left_alive, right_alive, allowed, prior, shared};
            made.check();
            new (self) BoundPairs(made);
          },
          "left"_a, "right"_a, "pair"_a, "left_alive"_a, "right_alive"_a, "allowed"_a, "prior"_a, "shared"_a);
  nb::class_<PairNetwork> network(module, "PairNetwork");
  network.def(
      "__init__",
      [](PairNetwork* self, Numpy<const float, 2> parameters, Index left, Index right, Index pair, Index hidden,
         bool has_scale) {
        const Index size = (left + right + pair + hidden + 3) * hidden + 1 + has_scale;
        require(left >= 0 && right >= 0 && pair >= 0 && hidden >= 1 && view(parameters).columns == size,
                "a network of these sizes has another number of parameters");
        new (self) PairNetwork(view(parameters), left, right, pair, hidden, has_scale);
      },
      "parameters"_a, "left"_a, "right"_a, "pair"_a, "hidden"_a, "has_scale"_a);
  network.def_prop_ro("words", &PairNetwork::words);
  bind_method(network, "score", score_pairs, "pairs", "scores", "gates");
  bind_method(network, "add_gradient", add_pair_gradient, "pairs", "slopes", "gates", "gradient");
}

void bind_critic(nb::module_& module) {
  nb::class_<EntityCritic> critic(module, "EntityCritic");
  critic.def(
      "__init__",
      [](EntityCritic* self, Numpy<const float, 1> parameters, Index agents, Index tasks, Index shared, Index width) {
        const Index size = width * (agents + tasks + 4 * width + 2 + shared + 2 * width + 6) + 1;
        require(agents >= 0 && tasks >= 0 && shared >= 0 && width >= 1 && view(parameters).size == size,
                "a critic of these sizes has another number of parameters");
        new (self) EntityCritic(view(parameters), agents, tasks, shared, width);
      },
      "parameters"_a, "agents"_a, "tasks"_a, "shared"_a, "width"_a);
  bind_method(critic, "value", fill_values, "agents", "tasks", "agent_alive", "task_alive", "shared", "values");
  bind_method(critic, "add_gradient", add_critic_gradient, "agents", "tasks", "agent_alive", "task_alive", "shared",
              "target", "values", "gradient");
}

// e^x in place, of an array of any shape.
void exp_in_place(nb::ndarray<float, nb::numpy, nb::c_contig, nb::device::cpu> x) {
  float* const values = x.data();
  const Index size = extent(x.size());
  for (Index k = 0; k < size; ++k) values[k] = exp_fixed(values[k]);
}

}  // namespace

void bind_models(nb::module_& module) {
  bind_pair_network(module);
  bind_critic(module);
  bind_function(module, "fill_layer", bound_fill_layer, "x", "weight", "bias", "rectified", "y");
  bind_function(module, "listen", bound_listen, "relation", "logit", "pull", "x", "y", "features", "distance",
                "audible", "heard");
  module.def("exp", &exp_in_place, "x"_a.noconvert());
}

}  // namespace muster
