#include "lagrangian.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

namespace muster {

namespace {

// Steps are shortened by this factor after some without progress, and end at this length.
constexpr double kShorter = 0.7, kTooShort = 1e-4;
// Share of the last direction that a step keeps.
constexpr double kMemory = 0.3;
// A bound lower by this share of itself is progress.
constexpr double kProgress = 1e-7;

// L at the prices, and the excess of every agent; nothing if stopped before the end.
std::optional<double> evaluate(Knapsacks& knapsacks, const AgentPrices& prices, Stop& stop) {
  const Index n = knapsacks.n;
  const Array1<double>& excess = prices.excess;
  double total = 0.0;
  for (Index i = 0; i < n; ++i) {
    const Index task = knapsacks.fixed[i];
    total += task >= 0 ? knapsacks.worth(task, i) : prices.price[i];
    excess[i] = task >= 0 ? 0.0 : -1.0;
  }
  for (Index j = 0; j <= knapsacks.m; ++j) {
    total += solve_knapsack(knapsacks, j, prices.price, excess);
    if (should_stop(knapsacks, stop)) return std::nullopt;
  }
  return total;
}

}  // namespace

AgentPrices make_agent_prices(Arena& arena, Index n) {
  return {arena.zeros1<double>(n), arena.zeros1<double>(n), arena.zeros1<double>(n), arena.zeros1<double>(n)};
}

Lowered lower_bound(Knapsacks& knapsacks, const AgentPrices& prices, StepRule rule, double enough, Stop& stop) {
  const Index n = knapsacks.n;
  const Array1<double>&price = prices.price, &excess = prices.excess, &direction = prices.direction;
  double lowest = kInfinity;
  Index since = 0;
  std::fill_n(direction.data, n, 0.0);
  std::copy_n(price.data, n, prices.best.data);
  for (Index turn = 0; turn < rule.steps; ++turn) {
    const std::optional<double> value = evaluate(knapsacks, prices, stop);
    if (!value) break;
    const double bound = *value;
    if (bound < lowest) {
      if (bound < lowest - kProgress * std::abs(bound)) since = 0;
      lowest = bound;
      std::copy_n(price.data, n, prices.best.data);
      if (lowest <= enough) return {lowest, Outcome::beaten};
    } else if (++since >= rule.patience) {
      rule.length *= kShorter;
      since = 0;
    }
    bool balanced = true;
    double norm = 0.0;
    for (Index i = 0; i < n; ++i) {
      balanced &= excess[i] == 0.0;
      direction[i] = excess[i] + kMemory * direction[i];
      norm += direction[i] * direction[i];
    }
    if (balanced) return {bound, Outcome::reached};
    if (norm == 0.0 || rule.length < kTooShort || stop.requested()) break;
    const double step = rule.length * std::min(bound - rule.target, rule.reach) / norm;
    for (Index i = 0; i < n; ++i) {
      if (knapsacks.fixed[i] < 0) price[i] += step * direction[i];
    }
  }
  std::copy_n(prices.best.data, n, price.data);
  return {lowest, Outcome::bound};
}

}  // namespace muster
