// The context model's rounds of attention: agents and tasks (listeners) attend to all others (speakers).
#pragma once

#include "array.hpp"

namespace muster {

// y = x weight + bias row by row, and no less than 0 if `rectified`: x [B, N, D], weight [D, C], y [B, N, C].
void fill_layer(Array3<const float> x, Array2<const float> weight, Array1<const float> bias, bool rectified,
                Array3<float> y);

// Parameters of attention between two kinds of objects.
struct Edge {
  Array2<const float> relation;  // [R, C]
  Array2<const float> logit;     // [H, C]
  Array1<const float> pull;      // [H] 1 / reach; 0 where there is no distance
};

// Relations of X listeners to Y speakers.
struct Relation {
  Array4<const float> features;  // [B, X, Y, R]
  Array3<const float> distance;  // [B, X, Y]
  Array3<const bool> heard;      // [B, X, Y]
};

// heard [B, X, C] = sum over speakers of share·u with u = relu(x + y + relation r), for each head share = softmax of
// logit u - distance·pull, with silence of logit 0: of listeners' layer x [B, X, C] and speakers' layer y [B, Y, C].
void listen(const Edge& edge, Array3<const float> x, Array3<const float> y, const Relation& relation,
            Array3<float> heard);

}  // namespace muster
