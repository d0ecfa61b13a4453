// Gradients of the pair networks, by hand.
//
// With e(p, k) the slope of the loss in the score of pair p, or 0 where unit k of the second layer is at 0, and C = X'e
// for the first layer X, the gradient of the second layer's weights is C diag(w3) and that of w3 is b2 sum(e) + the sums
// of W2 C down the columns: which units are above 0 is all that has to be known of the second layer.
#include <cmath>

#include "models/network.hpp"
#include "models/rows.hpp"
#include "models/sums.hpp"

namespace muster {

namespace {

// Slopes below this share of their mean size are taken for 0: together they are less than that share of the whole.
constexpr double kNegligible = 1e-5;
// States whose objects' slopes are gathered before they are multiplied by the objects' features.
constexpr Index kStatesGathered = 16;
// Tiles whose sums are added up in single precision before they join the total.
constexpr Index kTilesTogether = 4;

double mean_size(Array3<const float> slope) {
  const Index size = slope.layers * slope.rows * slope.columns;
  double part[4] = {};
  Index k = 0;
  for (; k + 4 <= size; k += 4) {
    for (Index lane = 0; lane < 4; ++lane) part[lane] += std::fabs(static_cast<double>(slope.data[k + lane]));
  }
  for (; k < size; ++k) part[0] += std::fabs(static_cast<double>(slope.data[k]));
  return ((part[0] + part[2]) + (part[1] + part[3])) / static_cast<double>(std::max<Index>(size, 1));
}

class Backward {
 public:
  Backward(const PairNetwork& network, const PairInputs& inputs, Array3<const float> slope, const std::uint32_t* gates,
           Arena& arena)
      : network_(network),
        inputs_(inputs),
        slopes_(slope),
        gates_(gates),
        layers_(network.layers(0)),
        width_(network.width),
        rows_(network, inputs, arena),
        js_(arena.make1<Index>(inputs.rights())),
        slope_(arena.make1<float>(kTile)),
        pair_features_(arena.zeros2<float>(kTile, round_up(network.pairs, 4))),
        above_(arena.make2<std::uint32_t>(kTile, network.words())),
        units_(arena.zeros2<float>(kTile, width_)),
        back_(arena.zeros2<float>(kTile, width_)),
        zero_(arena.zeros1<float>(width_)),
        state_(arena.make1<float>(width_)),
        of_left_(arena.zeros2<float>(kStatesGathered * inputs.lefts(), width_)),
        of_right_(arena.zeros2<float>(kStatesGathered * inputs.rights(), width_)),
        left_(network.lefts, width_, arena),
        right_(network.rights, width_, arena),
        pair_(round_up(network.pairs, 4), width_, arena),
        bias1_(1, width_, arena),
        second_(width_, width_, arena),
        units_sum_(1, width_, arena) {}

  // Go through all pairs whose slopes count.
  void run() {
    const float least = static_cast<float>(kNegligible * mean_size(slopes_));
    const Index n = inputs_.lefts(), m = inputs_.rights(), batch = inputs_.batch();
    for (Index slot = 0; slot < batch; ++slot) {
      if (slot % kStatesGathered == 0) finish_states(slot);
      bool begun = false;
      for (Index i = 0; i < n; ++i) {
        if (!inputs_.left_alive(slot, i)) continue;
        const float* const given = slopes_.row(slot, i).data;
        Index count = 0;
        for (Index j = 0; j < m; ++j) {
          if (std::fabs(given[j]) > least && inputs_.right_alive(slot, j) && inputs_.is_allowed(slot, i, j)) {
            js_[count++] = j;
          }
        }
        if (count == 0) continue;
        if (!begun) rows_.begin(layers_, slot, batch);
        begun = true;
        rows_.add(i, {js_.data, count}, [this] { descend(); });
      }
    }
    finish_states(batch);
    flush_tiles();
  }

  // Add all of it to the gradient, laid out as the parameters.
  void add_to_gradient(double* gradient) const {
    const Index hidden = network_.hidden;
    double* at = gradient;
    const auto add_part = [&](const double* from, Index count) {
      for (Index r = 0; r < count; ++r, from += width_, at += hidden) {
        for (Index k = 0; k < hidden; ++k) at[k] += from[k];
      }
    };
    add_part(left_.total.data, left_.rows);
    add_part(right_.total.data, right_.rows);
    add_part(pair_.total.data, network_.pairs);
    add_part(bias1_.total.data, 1);
    const double* const units = units_sum_.total.data;
    double* const bias2 = at + hidden * hidden;
    double* const weight3 = bias2 + hidden;
    for (Index k = 0; k < hidden; ++k) {
      bias2[k] += layers_.weight3[k] * units[k];
      double sum = layers_.bias2[k] * units[k];
      for (Index q = 0; q < hidden; ++q) {
        sum += layers_.weight2[q * width_ + k] * second_.total(q, k);
        at[q * hidden + k] += layers_.weight3[k] * second_.total(q, k);
      }
      weight3[k] += sum;
    }
    weight3[hidden] += bias3_;
    if (network_.has_scale) weight3[hidden + 1] += scale_;
  }

 private:
  // Back through the tile of pairs, and empty it.
  void descend() {
    const Index filled = rows_.filled;
    set_gates();
    for (Index t = 0; t < filled; ++t) {
      slope_[t] = slopes_.data[rows_.where[t]];
      bias3_ += static_cast<double>(slope_[t]);
      if (inputs_.prior.layers > 0) {
        scale_ += static_cast<double>(slope_[t] * static_cast<float>(inputs_.prior.data[rows_.where[t]]));
      }
    }
    spread_gates(above_.data, network_.words(), slope_.data, width_, filled, units_.data);
    units_sum_.add_rows(nullptr, units_, filled);
    second_.add_products(rows_.x, units_, filled);
    multiply({units_.data, width_, 1}, layers_.back, width_, zero_.data, 0, back_.data, width_, rows_.padded(), width_,
             width_, false);
    spread_to_objects();
    pair_.add_products(pair_features_, back_, filled);
    rows_.filled = 0;
    if (++tiles_ % kTilesTogether == 0) flush_tiles();
  }

  // Which units of the second layer are above 0: as the forward pass kept it, or by computing them.
  void set_gates() {
    const Index words = network_.words();
    if (gates_ == nullptr) {
      score_rows(rows_.x.data, layers_.weight2, layers_.bias2, layers_.weight3, layers_.bias3, width_, rows_.padded(),
                 slope_.data, above_.data, words);
      return;
    }
    for (Index t = 0; t < rows_.filled; ++t) {
      for (Index w = 0; w < words; ++w) above_(t, w) = gates_[rows_.where[t] * words + w];
    }
  }

  // Let the slopes in the first layer pass where it is above 0, and add them to those of the pairs' objects.
  void spread_to_objects() {
    const Index n = inputs_.lefts(), m = inputs_.rights(), features = network_.pairs;
    for (Index t = 0; t < rows_.filled; ++t) {
      const float* const from = inputs_.pair.data + rows_.where[t] * features;
      for (Index f = 0; f < features; ++f) pair_features_(t, f) = from[f];
      const float* const x = rows_.x.row(t).data;
      float* __restrict const slopes = back_.row(t).data;
      float* __restrict const left = of_left_.row(rows_.left[t] - first_ * n).data;
      float* __restrict const right = of_right_.row(rows_.right[t] - first_ * m).data;
      for (Index k = 0; k < width_; ++k) {
        const float here = x[k] > 0.0f ? slopes[k] : 0.0f;
        slopes[k] = here;
        left[k] += here;
        right[k] += here;
      }
    }
  }

  // Multiply the slopes gathered for the objects of the states before `end` by the objects' features.
  void finish_states(Index end) {
    if (rows_.filled > 0) descend();
    const Index n = inputs_.lefts(), m = inputs_.rights();
    const Index own = inputs_.left.columns, shared = network_.lefts - own;
    float* const state = state_.data;
    for (Index slot = first_; slot < end; ++slot) {
      std::fill_n(state, width_, 0.0f);
      for (Index i = 0; i < n; ++i) {
        if (!inputs_.left_alive(slot, i)) continue;
        float* const slopes = of_left_.row((slot - first_) * n + i).data;
        add_features(inputs_.left.row(slot, i), slopes, left_, 0);
        add_to(slopes, state, width_);
        std::fill_n(slopes, width_, 0.0f);
      }
      for (Index j = 0; j < m; ++j) {
        if (!inputs_.right_alive(slot, j)) continue;
        float* const slopes = of_right_.row((slot - first_) * m + j).data;
        add_features(inputs_.right.row(slot, j), slopes, right_, 0);
        std::fill_n(slopes, width_, 0.0f);
      }
      if (shared > 0) add_features(inputs_.shared.row(slot), state, left_, own);
      add_to(state, bias1_.part.data, width_);
    }
    left_.flush();
    right_.flush();
    bias1_.flush();
    first_ = end;
  }

  void add_features(Array1<const float> x, const float* slopes, const Sums& sums, Index row) const {
    for (Index d = 0; d < x.size; ++d) add_scaled(x[d], slopes, sums.part.row(row + d).data, width_);
  }

  void flush_tiles() const {
    second_.flush();
    pair_.flush();
    units_sum_.flush();
  }

  const PairNetwork& network_;
  const PairInputs& inputs_;
  Array3<const float> slopes_;
  const std::uint32_t* gates_;
  PairNetwork::Layers layers_;
  Index width_;
  PairRows rows_;
  Array1<Index> js_;
  Array1<float> slope_;          // [kTile] of the loss in each pair's score
  Array2<float> pair_features_;  // [kTile, F padded with zeros]
  Array2<std::uint32_t> above_;  // [kTile, words] which units of the second layer are above 0
  Array2<float> units_;          // [kTile, width] the slope for those units, 0 for the others
  Array2<float> back_;           // [kTile, width] slope of the loss in the first layer's sums
  Array1<float> zero_, state_;
  Array2<float> of_left_, of_right_;  // slopes of the loss in what objects add to the first layer
  Sums left_, right_, pair_, bias1_, second_, units_sum_;
  double bias3_ = 0.0, scale_ = 0.0;
  Index first_ = 0, tiles_ = 0;
};

}  // namespace

void PairNetwork::add_gradient(const PairInputs& inputs, Array3<const float> slope, const std::uint32_t* gates,
                               double* gradient) const {
  Arena arena;
  Backward backward(*this, inputs, slope, gates, arena);
  backward.run();
  backward.add_to_gradient(gradient);
}

}  // namespace muster
