// Gradients of the pair networks, by hand.
//
// With e(p, k) the slope of the loss in the score of pair p, or 0 where unit k of the second layer is at 0, and C = X'e
// for the first layer X, the gradient of the second layer's weights is C diag(w3) and that of w3 is b2 sum(e) + the sums
// of W2 C down the columns: which units are above 0 is all that has to be known of the second layer.
#include <cmath>

#include "models/elementary.hpp"
#include "models/network.hpp"
#include "models/rows.hpp"
#include "models/sums.hpp"

namespace muster {

namespace {

// Slopes below this share of their mean size are taken for 0: together they are less than that share of the whole.
constexpr double kNegligible = 1e-5;
// Bounds of the importance ratio, as in the authors' code.
constexpr float kSmallestRatio = 1e-6f, kLargestRatio = 10.0f;
// States whose objects' slopes are gathered before they are multiplied by the objects' features.
constexpr Index kStates = 16;
// Tiles whose sums are added up in single precision before they join the total.
constexpr Index kTiles = 4;

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

// The backward pass: pairs come in one by one with their slopes.
class Backward {
 public:
  Backward(const PairNetwork& network, const PairInputs& inputs, Arena& arena)
      : network_(network),
        inputs_(inputs),
        layers_(network.layers(0)),
        width_(network.width),
        rows(network, inputs, arena),
        score(arena.make1<float>(kTile)),
        slope(arena.zeros1<float>(kTile)),
        pair_features_(arena.zeros2<float>(kTile, round_up(network.pairs, 4))),
        above_(arena.make2<std::uint32_t>(kTile, network.words())),
        units_(arena.zeros2<float>(kTile, width_)),
        back_(arena.zeros2<float>(kTile, width_)),
        zero_(arena.zeros1<float>(width_)),
        state_(arena.make1<float>(width_)),
        of_left_(arena.zeros2<float>(kStates * inputs.lefts(), width_)),
        of_right_(arena.zeros2<float>(kStates * inputs.rights(), width_)),
        left_(network.lefts, width_, arena),
        right_(network.rights, width_, arena),
        pair_(round_up(network.pairs, 4), width_, arena),
        bias1_(1, width_, arena),
        second_(width_, width_, arena),
        units_sum_(1, width_, arena) {}

  // Begin with the next state. `descend` is what to do with a full tile.
  template <class Descend>
  void begin(Index slot, const Descend& descend) {
    if (slot % kStates == 0) {
      descend();
      gather_objects(slot);
      first_ = slot;
    }
    slot_ = slot;
    begun_ = false;
  }

  // Append pairs of left object i of the state with the right ones `js`.
  template <class Descend>
  void add(Index i, Array1<const Index> js, const Descend& descend) {
    if (js.size == 0) return;
    if (!begun_) rows.begin(layers_, slot_, inputs_.batch());
    begun_ = true;
    rows.add(i, js, descend);
  }

  // Forward through the tile: scores, and which units of the second layer are above 0.
  void forward() {
    score_rows(rows.x.data, layers_.weight2, layers_.bias2, layers_.weight3, layers_.bias3, width_, rows.padded(),
               score.data, above_.data, network_.words());
    for (Index t = 0; t < rows.filled; ++t) score[t] = with_prior(layers_, inputs_, rows.where[t], score[t]);
  }

  // Instead, if those units are known.
  void recall(const std::uint32_t* gates) {
    for (Index t = 0; t < rows.filled; ++t) {
      for (Index w = 0; w < network_.words(); ++w) above_(t, w) = gates[rows.where[t] * network_.words() + w];
    }
  }

  // Back through the tile from `slope`.
  void backward() {
    const Index filled = rows.filled;
    for (Index t = 0; t < filled; ++t) {
      bias3_ += slope[t];
      if (inputs_.prior.layers > 0) scale_ += slope[t] * static_cast<float>(inputs_.prior.data[rows.where[t]]);
    }
    spread_gates(above_.data, network_.words(), slope.data, width_, filled, units_.data);
    units_sum_.add_rows(nullptr, units_, filled);
    second_.add_products(rows.x, units_, filled);
    multiply({units_.data, width_, 1}, layers_.back, width_, zero_.data, 0, back_.data, width_, rows.padded(), width_,
             width_, false);
    const Index n = inputs_.lefts(), m = inputs_.rights(), features = network_.pairs;
    for (Index t = 0; t < filled; ++t) {
      const Index at = rows.where[t], object = at / m - first_ * n;
      const Index state = object / n, other = state * m + at % m;
      for (Index f = 0; f < features; ++f) pair_features_(t, f) = inputs_.pair.data[at * features + f];
      const float* const x = rows.x.row(t).data;
      float* __restrict const slopes = back_.row(t).data;
      float* __restrict const left = of_left_.row(object).data;
      float* __restrict const right = of_right_.row(other).data;
      for (Index k = 0; k < width_; ++k) {
        const float here = x[k] > 0.0f ? slopes[k] : 0.0f;
        slopes[k] = here;
        left[k] += here;
        right[k] += here;
      }
    }
    pair_.add_products(pair_features_, back_, filled);
    rows.filled = 0;
    if (++tiles_ % kTiles == 0) flush_tiles();
  }

  // Add all of it to the gradient, laid out as the parameters.
  void finish(Index end, double* gradient) {
    gather_objects(end);
    flush_tiles();
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
  // Multiply the slopes gathered for the objects of the states before `end` by the objects' features.
  void gather_objects(Index end) {
    const Index n = inputs_.lefts(), m = inputs_.rights();
    const Index own = inputs_.left.columns, shared = inputs_.shared.rows > 0 ? inputs_.shared.columns : 0;
    for (Index slot = first_; slot < end; ++slot) {
      float* const state = state_.data;
      std::fill_n(state, width_, 0.0f);
      for (Index i = 0; i < n; ++i) {
        if (!inputs_.left_alive(slot, i)) continue;
        float* const slopes = of_left_.row((slot - first_) * n + i).data;
        const float* const x = inputs_.left.row(slot, i).data;
        for (Index d = 0; d < own; ++d) add_scaled(x[d], slopes, left_.part.row(d).data, width_);
        add_to(slopes, state, width_);
        std::fill_n(slopes, width_, 0.0f);
      }
      for (Index j = 0; j < m; ++j) {
        if (!inputs_.right_alive(slot, j)) continue;
        float* const slopes = of_right_.row((slot - first_) * m + j).data;
        const float* const x = inputs_.right.row(slot, j).data;
        for (Index d = 0; d < network_.rights; ++d) add_scaled(x[d], slopes, right_.part.row(d).data, width_);
        std::fill_n(slopes, width_, 0.0f);
      }
      for (Index d = 0; d < shared; ++d) {
        add_scaled(inputs_.shared(slot, d), state, left_.part.row(own + d).data, width_);
      }
      add_to(state, bias1_.part.data, width_);
    }
    left_.flush();
    right_.flush();
    bias1_.flush();
  }

  void flush_tiles() {
    second_.flush();
    pair_.flush();
    units_sum_.flush();
  }

  const PairNetwork& network_;
  const PairInputs& inputs_;
  PairNetwork::Layers layers_;
  Index width_;

 public:
  PairRows rows;
  Array1<float> score;  // [kTile]
  Array1<float> slope;  // [kTile] of the loss in each pair's score

 private:
  Array2<float> pair_features_;  // [kTile, F padded with zeros]
  Array2<std::uint32_t> above_;  // which units of the second layer are above 0
  Array2<float> units_;  // [kTile, width] slope, or 0 where a unit of the second layer is at 0
  Array2<float> back_;   // [kTile, width] slope of the loss in the first layer's sums
  Array1<float> zero_, state_;
  Array2<float> of_left_, of_right_;  // slopes of what objects add to the first layer
  Sums left_, right_, pair_, bias1_, second_, units_sum_;
  double bias3_ = 0.0, scale_ = 0.0;
  Index slot_ = 0, first_ = 0, tiles_ = 0;
  bool begun_ = false;
};

}  // namespace

void PairNetwork::add_gradient(const PairInputs& inputs, Array3<const float> slope, const std::uint32_t* gates,
                               double* gradient) const {
  Arena arena;
  Backward back(*this, inputs, arena);
  const Array1<Index> js = arena.make1<Index>(inputs.rights());
  const float least = static_cast<float>(kNegligible * mean_size(slope));
  const Index n = inputs.lefts(), m = inputs.rights(), batch = inputs.batch();
  const auto descend = [&] {
    for (Index t = 0; t < back.rows.filled; ++t) back.slope[t] = slope.data[back.rows.where[t]];
    if (gates == nullptr) {
      back.forward();
    } else {
      back.recall(gates);
    }
    back.backward();
  };
  for (Index slot = 0; slot < batch; ++slot) {
    back.begin(slot, descend);
    for (Index i = 0; i < n; ++i) {
      if (!inputs.left_alive(slot, i)) continue;
      const float* const given = slope.row(slot, i).data;
      Index count = 0;
      for (Index j = 0; j < m; ++j) {
        if (std::fabs(given[j]) > least && inputs.right_alive(slot, j) && inputs.is_allowed(slot, i, j)) js[count++] = j;
      }
      back.add(i, {js.data, count}, descend);
    }
  }
  descend();
  back.finish(batch, gradient);
}

double PairNetwork::add_likelihood_gradient(const PairInputs& inputs, Array3<const float> old,
                                            Array3<const float> played, Array1<const float> advantage, float sigma,
                                            double* gradient) const {
  Arena arena;
  Backward back(*this, inputs, arena);
  const Array1<Index> js = arena.make1<Index>(inputs.rights());
  const Index n = inputs.lefts(), m = inputs.rights(), batch = inputs.batch();
  const float precision = 1.0f / (sigma * sigma);
  double loss = 0.0;
  const auto descend = [&] {
    back.forward();
    for (Index t = 0; t < back.rows.filled; ++t) {
      const Index at = back.rows.where[t];
      const float worth = advantage[at / (n * m)] / static_cast<float>(batch);
      const float error = played.data[at] - back.score[t], before = played.data[at] - old.data[at];
      const float likelihood = -0.5f * precision * error * error;
      const float ratio = exp_fixed(likelihood + 0.5f * precision * before * before);
      const float clamped = std::min(std::max(ratio, kSmallestRatio), kLargestRatio);
      loss -= static_cast<double>(worth * clamped * likelihood);
      back.slope[t] = -worth * clamped * precision * error;
    }
    back.backward();
  };
  for (Index slot = 0; slot < batch; ++slot) {
    back.begin(slot, descend);
    for (Index i = 0; i < n; ++i) {
      if (!inputs.left_alive(slot, i)) continue;
      Index count = 0;
      for (Index j = 0; j < m; ++j) {
        if (inputs.right_alive(slot, j) && inputs.is_allowed(slot, i, j)) js[count++] = j;
      }
      back.add(i, {js.data, count}, descend);
    }
  }
  descend();
  back.finish(batch, gradient);
  return loss;
}

}  // namespace muster
