#include "models/context.hpp"

#include <algorithm>

#include "arena.hpp"
#include "models/dense.hpp"
#include "models/elementary.hpp"

namespace muster {

namespace {

constexpr Index kLanes = 8;

// x·y in 8 partial sums, the last entries in the first of them.
float dot(const float* x, const float* y, Index size) {
  float part[kLanes] = {};
  Index k = 0;
  for (; k + kLanes <= size; k += kLanes) {
    for (Index lane = 0; lane < kLanes; ++lane) part[lane] += x[k + lane] * y[k + lane];
  }
  for (; k < size; ++k) part[0] += x[k] * y[k];
  return ((part[0] + part[4]) + (part[1] + part[5])) + ((part[2] + part[6]) + (part[3] + part[7]));
}

void rectify(float* x, Index size) {
  for (Index k = 0; k < size; ++k) x[k] = x[k] > 0.0f ? x[k] : 0.0f;
}

// The speakers' words, each by its share; logits become exponentials.
void mix(Array2<const float> said, float* __restrict logits, Index count, Index first, Index each, float* heard) {
  float top = 0.0f;
  for (Index j = 0; j < count; ++j) top = std::max(top, logits[j]);
  for (Index j = 0; j < count; ++j) logits[j] = exp_fixed(logits[j] - top);
  float total = exp_fixed(-top);
  for (Index j = 0; j < count; ++j) total += logits[j];
  for (Index j = 0; j < count; ++j) add_scaled(logits[j] / total, said.row(j).data + first, heard + first, each);
}

}  // namespace

void fill_layer(Array3<const float> x, Array2<const float> weight, Array1<const float> bias, bool rectified,
                Array3<float> y) {
  const Index width = weight.columns;
  for (Index row = 0; row < x.layers * x.rows; ++row) {
    const float* const from = x.data + row * x.columns;
    float* const to = y.data + row * width;
    std::copy_n(bias.data, width, to);
    for (Index k = 0; k < x.columns; ++k) {
      if (from[k] != 0.0f) add_scaled(from[k], weight.row(k).data, to, width);
    }
    if (rectified) rectify(to, width);
  }
}

void listen(const Edge& edge, Array3<const float> x, Array3<const float> y, const Relation& relation,
            Array3<float> heard) {
  const Index width = x.columns, m = y.rows, heads = edge.logit.rows, each = width / std::max<Index>(heads, 1);
  Arena arena;
  const Array2<float> said = arena.make2<float>(m, width), logits = arena.make2<float>(heads, m);
  for (Index b = 0; b < x.layers; ++b) {
    for (Index i = 0; i < x.rows; ++i) {
      Index count = 0;
      const float* const listener = x.row(b, i).data;
      for (Index j = 0; j < m; ++j) {
        if (!relation.heard(b, i, j)) continue;
        float* __restrict const words = said.row(count).data;
        const float* const speaker = y.row(b, j).data;
        for (Index c = 0; c < width; ++c) words[c] = listener[c] + speaker[c];
        const float* const known = relation.features.block(b).row(i, j).data;
        for (Index k = 0; k < edge.relation.rows; ++k) add_scaled(known[k], edge.relation.row(k).data, words, width);
        rectify(words, width);
        for (Index head = 0; head < heads; ++head) {
          logits(head, count) = dot(words, edge.logit.row(head).data, width) - relation.distance(b, i, j) * edge.pull[head];
        }
        ++count;
      }
      float* const to = heard.row(b, i).data;
      std::fill_n(to, width, 0.0f);
      for (Index head = 0; head < heads; ++head) {
        mix({said.data, m, width}, logits.row(head).data, count, head * each, each, to);
      }
    }
  }
}

}  // namespace muster
