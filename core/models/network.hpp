// The pair networks of the direct model:
//
//   score(i, j) = scale·prior_ij + w3·relu(W2 relu(Wl x_i + Wr s_j + Wp f_ij + b1) + b2) + b3
//
// where x_i are the features of the left object followed by those of the whole environment. What an object adds to the
// first layer is computed once an instance, not once a pair.
#pragma once

#include <cstdint>
#include <vector>

#include "models/pairs.hpp"

namespace muster {

// Parameters of P networks, padded and transposed as the kernels read them.
class PairNetwork {
 public:
  // Rows of `parameters` [P, size] hold, row-major and one after the other: left [L, K] (the environment's features
  // included), right [E, K], pair [F, K], bias1 [K], weight2 [K, K], bias2 [K], weight3 [K], bias3 [1] and, if
  // `has_scale`, scale [1].
  PairNetwork(Array2<const float> parameters, Index left, Index right, Index pair, Index hidden, bool has_scale);

  struct Layers {
    const float* left;     // [L, width]
    const float* right;    // [E, width]
    const float* pair;     // [F, width]
    const float* bias1;    // [width]
    const float* weight2;  // [width, width]
    const float* bias2;    // [width]
    const float* weight3;  // [width]
    const float* back;     // [width, width]: back(k, q) = weight3(k) weight2(q, k)
    float bias3;
    float scale;
  };
  Layers layers(Index model) const;

  // Scores [B, N, M] of all pairs; 0 for objects that are not alive and pairs that are not allowed. With `gates`
  // [B, N, M, words()], also which units of the second layer are above 0. State s belongs to model s / (B / P).
  void score(const PairInputs& inputs, float* scores, std::uint32_t* gates) const;

  // Add the gradient of a loss, given its slopes in the scores, to `gradient` [size], laid out as the parameters. Slopes
  // far below their mean size count as 0. `gates` of the same inputs (null: none) save a third of the time. One model.
  void add_gradient(const PairInputs& inputs, Array3<const float> slope, const std::uint32_t* gates,
                    double* gradient) const;

  Index words() const { return (width + 31) / 32; }

  Index models, lefts, rights, pairs, hidden;
  Index width;  // of the hidden layers, padded with zeros
  bool has_scale;

 private:
  Index packed_size() const { return (lefts + rights + pairs + 2 * width + 4) * width + 2; }

  std::vector<float> packed_;
};

}  // namespace muster
