#include "learning/choices.hpp"

#include <algorithm>

#include "learning/options.hpp"

namespace muster {

namespace {

constexpr double kLargestLogRatio = 20.0;

// Slopes of sum gain·log p + entropy gain·entropy in h and g, of one state.
class Slopes {
 public:
  Slopes(Options& options, bool pairs, Arena& arena)
      : options_(options),
        h_(arena.make2<double>(options.n, options.m)),
        option_(arena.make1<double>(options.count)),
        sum_(arena.make1<double>(options.m)),
        own_(pairs ? arena.make2<double>(options.m, options.m) : Array2<double>{}) {}

  void clear() {
    std::fill_n(h_.data, h_.rows * h_.columns, 0.0);
    std::fill_n(sum_.data, sum_.size, 0.0);
    std::fill_n(own_.data, own_.rows * own_.columns, 0.0);
  }

  // Agent i, whose options are weighed and have that entropy.
  void add(Index i, double gain, double entropy_gain, double entropy, double tau) {
    const Index n = options_.n, m = options_.m, own = options_.own(i);
    double* __restrict const slope = option_.data;
    const double* const chance = options_.chance.data;
    const double* const utility = options_.utility.data;
    const double shift = options_.shift();
    for (Index j = 0; j < options_.count; ++j) {
      const double p = chance[j];
      const double spread = p > 0.0 ? entropy_gain * p * (utility[j] - shift + entropy) : 0.0;
      slope[j] = (-gain * p - spread) / tau;
    }
    const Index taken = own >= 0 ? own : m;
    slope[taken] += gain / tau;
    double stay = 0.0;
    for (Index k = 0; k < n; ++k) {
      const double here = slope[m + 1 + k];
      if (here == 0.0) continue;
      stay += here;
      spread_exchange(i, k, here / Options::kExchange);
    }
    // Exchanges are valued from the agent's own option up.
    slope[taken] += stay;
    const double idling = slope[m] * options_.idling_slope();
    for (Index j = 0; j < m && idling != 0.0; ++j) slope[j] += idling * chance[j];
    double* __restrict const row = h_.row(i).data;
    for (Index j = 0; j < m; ++j) row[j] += slope[j];
    for (Index k = 0; k < n && options_.is_needed(i); ++k) {
      if (k != i && options_.alive(k) && options_.own(k) == own) h_(k, own) += slope[own];
    }
    if (own_.rows == 0) return;
    // The utility of option j contains g_jj and (g_jl + g_lj) for each other agent's task l: all agents' but its own.
    double* __restrict const sums = sum_.data;
    for (Index j = 0; j < m; ++j) sums[j] += slope[j];
    if (own < 0) return;
    double* __restrict const mine = own_.row(own).data;
    for (Index j = 0; j < m; ++j) mine[j] += slope[j];
  }

  void write(double weight, Array2<float> slope_h, float* slope_g) const {
    const Index m = options_.m;
    for (Index k = 0; k < h_.rows * m; ++k) slope_h.data[k] = static_cast<float>(weight * h_.data[k]);
    if (own_.rows == 0) return;
    const double* const counts = options_.counts.data;
    for (Index j = 0; j < m; ++j) {
      for (Index k = 0; k < m; ++k) {
        const double others = (sum_[j] * counts[k] - own_(k, j)) + (counts[j] * sum_[k] - own_(j, k));
        slope_g[j * m + k] = static_cast<float>(weight * (j == k ? others + sum_[j] : others));
      }
    }
  }

 private:
  void spread_exchange(Index i, Index k, double slope) const {
    const Index mine = options_.own(i), theirs = options_.own(k);
    if (mine >= 0) h_(k, mine) += slope, h_(i, mine) -= slope;
    if (theirs >= 0) h_(i, theirs) += slope, h_(k, theirs) -= slope;
  }

  Options& options_;
  Array2<double> h_;       // [N, M]
  Array1<double> option_;  // [count] of one agent's utilities
  Array1<double> sum_;     // [M] of all agents' utilities of each task
  Array2<double> own_;     // [M, M] row j: of those of the agents on task j
};

}  // namespace

void fill_likelihood(const Decisions& decisions, const ChoiceScores& scores, Array2<double> likelihood) {
  Arena arena;
  Options options(decisions, arena);
  for (Index s = 0; s < likelihood.rows; ++s) {
    options.begin(s, scores);
    for (Index i = 0; i < options.n; ++i) {
      likelihood(s, i) = options.alive(i) && options.weigh(i) ? options.log_likelihood(i) : 0.0;
    }
  }
}

double share_with_moves(const Decisions& decisions) {
  Arena arena;
  Options options(decisions, arena);
  Index able = 0, living = 0;
  for (Index s = 0; s < decisions.assignment.rows; ++s) {
    options.begin(s);
    for (Index i = 0; i < options.n; ++i) {
      if (!options.alive(i)) continue;
      ++living;
      able += options.has_moves(i);
    }
  }
  return static_cast<double>(able) / static_cast<double>(std::max<Index>(living, 1));
}

LossAndEntropy fill_slopes(const Decisions& decisions, const ChoiceScores& scores, const ClippedLoss& loss,
                           double weight, Array3<float> slope_h, Array3<float> slope_g) {
  Arena arena;
  Options options(decisions, arena);
  Slopes slopes(options, scores.g.layers > 0, arena);
  const Index states = decisions.assignment.rows, n = options.n;
  Index living = 0;
  for (Index k = 0; k < states * n; ++k) living += decisions.agent_alive.data[k];
  const double count = static_cast<double>(std::max<Index>(living, 1));
  double worths = 0.0, entropies = 0.0;
  Index choosing = 0;
  for (Index s = 0; s < states; ++s) {
    options.begin(s, scores);
    slopes.clear();
    const double advantage = loss.advantage[s];
    for (Index i = 0; i < n; ++i) {
      if (!options.alive(i)) continue;
      const bool chose = options.weigh(i);
      const double moved = (chose ? options.log_likelihood(i) : 0.0) - loss.before(s, i);
      const double ratio = exp_fixed(std::min(std::max(moved, -kLargestLogRatio), kLargestLogRatio));
      double worth = ratio * advantage, gain = worth;
      if (loss.clip != 0.0) {
        const double clamped = std::min(std::max(ratio, 1.0 - loss.clip), 1.0 + loss.clip) * advantage;
        // Where the clamped term is the smaller one, its slope is 0.
        gain = clamped < worth ? 0.0 : gain;
        worth = std::min(worth, clamped);
      }
      worths += worth;
      if (!chose) continue;
      const double entropy = options.entropy();
      entropies += entropy;
      ++choosing;
      slopes.add(i, gain / count, loss.entropy / count, entropy, scores.tau);
    }
    slopes.write(-weight, slope_h.layer(s), slope_g.data + s * slope_g.rows * slope_g.columns);
  }
  const double entropy = entropies / static_cast<double>(std::max<Index>(choosing, 1));
  return {-worths / count - loss.entropy * entropy, entropy};
}

}  // namespace muster
