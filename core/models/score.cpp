// Scores of all pairs.
#include "models/network.hpp"
#include "models/rows.hpp"

namespace muster {

void PairNetwork::score(const PairInputs& inputs, float* scores, std::uint32_t* gates) const {
  Arena arena;
  const Index batch = inputs.batch(), n = inputs.lefts(), m = inputs.rights();
  const Index each = std::max<Index>(batch / models, 1);  // states of a model
  PairRows rows(*this, inputs, arena);
  Twins twins(inputs, arena);
  const Array1<float> found = arena.make1<float>(kTile);
  const Array2<std::uint32_t> above = arena.make2<std::uint32_t>(kTile, words());
  const Array1<Index> first = arena.make1<Index>(n), allowed = arena.make1<Index>(m);
  Layers layers{};

  const auto flush = [&] {
    score_rows(rows.x.data, layers.weight2, layers.bias2, layers.weight3, layers.bias3, width, rows.padded(), found.data,
               gates == nullptr ? nullptr : above.data, words());
    for (Index t = 0; t < rows.filled; ++t) {
      const Index at = rows.where[t];
      scores[at] = with_prior(layers, inputs, at, found[t]);
      if (gates == nullptr) continue;
      for (Index w = 0; w < words(); ++w) gates[at * words() + w] = above(t, w);
    }
    rows.filled = 0;
  };

  std::fill_n(scores, batch * n * m, 0.0f);
  for (Index slot = 0; slot < batch; ++slot) {
    if (slot % each == 0) {
      flush();
      layers = this->layers(slot / each);
    }
    twins.begin(slot);
    const Array1<const Index> living = twins.living();
    if (living.size == 0) continue;
    rows.begin(layers, slot, std::min((slot / each + 1) * each, batch));
    bool alike = false;
    for (Index i = 0; i < n; ++i) {
      first[i] = i;
      if (!inputs.left_alive(slot, i)) continue;
      first[i] = twins.first_like(i);
      alike |= first[i] != i;
      if (first[i] != i) continue;
      if (inputs.allowed.layers == 0) {
        rows.add(i, living, flush);
        continue;
      }
      Index count = 0;
      for (const Index j : living) {
        allowed[count] = j;
        count += inputs.allowed(slot, i, j);
      }
      rows.add(i, {allowed.data, count}, flush);
    }
    if (!alike) continue;
    flush();
    for (Index i = 0; i < n; ++i) {
      if (first[i] == i) continue;
      const Index from = (slot * n + first[i]) * m, to = (slot * n + i) * m;
      std::copy_n(scores + from, m, scores + to);
      if (gates != nullptr) std::copy_n(gates + from * words(), m * words(), gates + to * words());
    }
  }
  flush();
}

}  // namespace muster
