#include "models/network.hpp"

#include "models/dense.hpp"

namespace muster {

PairNetwork::PairNetwork(Array2<const float> parameters, Index left, Index right, Index pair, Index hidden_,
                         bool has_scale_)
    : models(parameters.rows),
      lefts(left),
      rights(right),
      pairs(pair),
      hidden(hidden_),
      width(round_up(hidden_, kColumns)),
      has_scale(has_scale_),
      packed_(static_cast<std::size_t>(models * packed_size())) {
  for (Index p = 0; p < models; ++p) {
    const float* from = parameters.row(p).data;
    float* to = packed_.data() + p * packed_size();
    const auto copy_rows = [&](Index rows) {
      for (Index r = 0; r < rows; ++r, from += hidden, to += width) std::copy_n(from, hidden, to);
    };
    copy_rows(left + right + pair + 1);  // up to bias1
    const float* weight2 = to;
    copy_rows(hidden);
    to += (width - hidden) * width;
    copy_rows(1);
    const float* weight3 = to;
    copy_rows(1);
    for (Index k = 0; k < width; ++k, to += width) {
      for (Index q = 0; q < width; ++q) to[q] = weight3[k] * weight2[q * width + k];
    }
    to[0] = from[0];
    to[1] = has_scale ? from[1] : 0.0f;
  }
}

PairNetwork::Layers PairNetwork::layers(Index model) const {
  const float* at = packed_.data() + model * packed_size();
  const auto take = [&](Index rows) {
    const float* start = at;
    at += rows * width;
    return start;
  };
  Layers found;
  found.left = take(lefts);
  found.right = take(rights);
  found.pair = take(pairs);
  found.bias1 = take(1);
  found.weight2 = take(width);
  found.bias2 = take(1);
  found.weight3 = take(1);
  found.back = take(width);
  found.bias3 = at[0];
  found.scale = at[1];
  return found;
}

}  // namespace muster
