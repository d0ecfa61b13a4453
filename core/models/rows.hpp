// Pairs of objects as rows of a matrix, and the first layer of a pair network on them.
#pragma once

#include "models/dense.hpp"
#include "models/network.hpp"

namespace muster {

// Pairs that are worked on together: few enough for the first-level cache.
constexpr Index kTile = 64;
// Objects of several states whose part of the first layer is computed together.
constexpr Index kObjectsTogether = 256;

// The score of the pair at index `at` of [B, N, M], given the network's output.
inline float with_prior(const PairNetwork::Layers& layers, const PairInputs& inputs, Index at, float score) {
  return inputs.prior.layers == 0 ? score : score + layers.scale * static_cast<float>(inputs.prior.data[at]);
}

class PairRows {
 public:
  PairRows(const PairNetwork& network, const PairInputs& inputs, Arena& arena)
      : width_(network.width),
        inputs_(inputs),
        states_(std::clamp<Index>(kObjectsTogether / (inputs.lefts() + inputs.rights() + 1), 1, inputs.batch() + 1)),
        of_left_(arena.make2<float>(states_ * inputs.lefts(), width_)),
        of_right_(arena.make2<float>(states_ * inputs.rights(), width_)),
        zero_(arena.zeros1<float>(width_)),
        x(arena.zeros2<float>(kTile, width_)),
        where(arena.make1<Index>(kTile)),
        left(arena.make1<Index>(kTile)),
        right(arena.make1<Index>(kTile)) {}

  // Go on to a state. What its objects add to the first layer, left objects with the environment and the bias, is
  // computed for some of the states up to `end` together.
  void begin(const PairNetwork::Layers& layers, Index slot, Index end) {
    slot_ = slot;
    if (slot < known_) return;
    pair_weight_ = layers.pair;
    first_ = slot;
    known_ = std::min(slot + states_, end);
    const Index own = inputs_.left.columns, theirs = inputs_.right.columns;
    const Index n = inputs_.lefts(), m = inputs_.rights(), count = known_ - slot;
    const Index shared = inputs_.shared.rows > 0 ? inputs_.shared.columns : 0;
    multiply({inputs_.left.layer(slot).data, own, 1}, layers.left, width_, layers.bias1, 0, of_left_.data, width_,
             count * n, own, width_, false);
    for (Index s = 0; s < count && shared > 0; ++s) {
      float* const rows = of_left_.data + s * n * width_;
      multiply({inputs_.shared.row(slot + s).data, 0, 1}, layers.left + own * width_, width_, rows, width_, rows, width_,
               n, shared, width_, false);
    }
    multiply({inputs_.right.layer(slot).data, theirs, 1}, layers.right, width_, zero_.data, 0, of_right_.data, width_,
             count * m, theirs, width_, false);
  }

  // Append pairs of left object i with the right ones `js`; calls `flush`, which has to empty the tile, when it is full.
  template <class Flush>
  void add(Index i, Array1<const Index> js, const Flush& flush) {
    const Index first = (slot_ * inputs_.lefts() + i) * inputs_.rights();
    for (Index done = 0; done < js.size;) {
      const Index count = std::min(kTile - filled, js.size - done);
      const Index features = inputs_.pair.columns;
      const Index state = slot_ - first_;
      first_layer(of_left_.row(state * inputs_.lefts() + i).data,
                  of_right_.data + state * inputs_.rights() * width_, inputs_.pair.data + first * features, features,
                  pair_weight_, js.data + done, count, width_, x.row(filled).data);
      for (Index t = 0; t < count; ++t) {
        where[filled + t] = first + js[done + t];
        left[filled + t] = slot_ * inputs_.lefts() + i;
        right[filled + t] = slot_ * inputs_.rights() + js[done + t];
      }
      filled += count;
      done += count;
      if (filled == kTile) flush();
    }
  }

  // Rows in use, and those that whole blocks of the product fill up.
  Index padded() const { return round_up(filled, 4); }

 private:
  Index width_;
  const PairInputs& inputs_;
  Index states_;
  Index slot_ = 0, first_ = 0, known_ = 0;  // the present state, and those whose objects are known
  const float* pair_weight_ = nullptr;
  Array2<float> of_left_, of_right_;
  Array1<float> zero_;

 public:
  Array2<float> x;      // [kTile, width] the first layer
  Array1<Index> where;  // [kTile] index of each pair in [B, N, M],
  Array1<Index> left;   // of its left object in [B, N]
  Array1<Index> right;  // and of its right one in [B, M]
  Index filled = 0;
};

}  // namespace muster
