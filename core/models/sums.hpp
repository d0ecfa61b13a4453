// Sums over many rows: in single precision over some of them, whose totals are added up in double precision.
#pragma once

#include "arena.hpp"
#include "models/dense.hpp"

namespace muster {

struct Sums {
  Sums(Index rows_, Index width_, Arena& arena)
      : rows(rows_), width(width_), part(arena.zeros2<float>(rows_, width_)), total(arena.zeros2<double>(rows_, width_)) {}

  // part += a' b, for a [count, rows] and b [count, width].
  void add_products(Array2<float> a, Array2<float> b, Index count) const {
    multiply({a.data, 1, a.columns}, b.data, b.columns, part.data, width, part.data, width, rows, count, width, false);
  }

  // The first row of part += the rows of b, each times its factor (null: 1).
  void add_rows(const float* factor, Array2<float> b, Index count) const {
    static constexpr float kOne = 1.0f;
    multiply({factor == nullptr ? &kOne : factor, 0, factor == nullptr ? 0 : 1}, b.data, b.columns, part.data, 0,
             part.data, 0, 1, count, width, false);
  }

  void flush() const {
    for (Index k = 0; k < rows * width; ++k) total.data[k] += static_cast<double>(part.data[k]);
    std::fill_n(part.data, rows * width, 0.0f);
  }

  Index rows, width;
  Array2<float> part;
  Array2<double> total;
};

}  // namespace muster
