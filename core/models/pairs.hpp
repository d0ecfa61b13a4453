// Inputs of one network of the direct model, and which objects have equal features: those are scored once.
#pragma once

#include "arena.hpp"
#include "array.hpp"

namespace muster {

// Features of the objects on the two sides of B instances and of their pairs, and which objects are alive.
struct PairInputs {
  Array3<const float> left;        // [B, N, D]
  Array3<const float> right;       // [B, M, E]
  Array4<const float> pair;        // [B, N, M, F]
  Array2<const bool> left_alive;   // [B, N]
  Array2<const bool> right_alive;  // [B, M]
  Array3<const bool> allowed;      // [B, N, M], or empty: then all are
  Array3<const double> prior;      // [B, N, M], or empty
  Array2<const float> shared;      // [B, G] of the whole environment, or empty

  Index batch() const { return left_alive.rows; }
  Index lefts() const { return left_alive.columns; }
  Index rights() const { return right_alive.columns; }
  bool is_allowed(Index slot, Index i, Index j) const { return allowed.layers == 0 || allowed(slot, i, j); }
};

// Finds left objects that read alike with all living right ones.
class Twins {
 public:
  Twins(const PairInputs& inputs, Arena& arena);

  // Start with a state: list its living right objects.
  void begin(Index slot);
  // The right objects that live.
  Array1<const Index> living() const { return {living_.data, count_}; }
  // The first left object that reads as object i does: i itself if there is none before it. Call it in ascending order.
  Index first_like(Index i);

 private:
  std::uint64_t key_of(Index i) const;
  bool are_alike(Index i, Index other) const;

  const PairInputs& inputs_;
  Index slot_ = 0;
  Index count_ = 0;
  Index others_ = 0;
  Array1<Index> living_;
  Array1<Index> firsts_;        // left objects that no other is like
  Array1<std::uint64_t> keys_;  // theirs; objects that read alike have the same
};

}  // namespace muster
