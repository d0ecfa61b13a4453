#include "bindings.hpp"

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
}

}  // namespace muster
