#include "proof.hpp"

#include <algorithm>

#include "../local_search.hpp"

namespace muster {

namespace {

// Nodes between two checks of the stop.
constexpr Index kNodesBetweenStops = 32;

// Note for every agent the first that is like it.
void find_alike(Proof& proof, const Instance& instance) {
  for (Index i = 0; i < instance.n; ++i) {
    proof.order[i] = i;
    Index first = 0;
    while (first < i && !(proof.like[first] == first && are_alike(instance, i, first))) ++first;
    proof.like[i] = first;
  }
}

// Upper bound on the gain of agent i on task j, less the price of its capacity, with `others` agents to come; -infinity
// where it does not fit.
inline double bound_choice(const Plan& trial, const Instance& instance, const Proof& proof,
                           const Array1<double>& prices, Index i, Index j, Index others) {
  const double use = instance.use(i, j);
  if (!fits(trial.load[j], use, instance.capacity[j])) return -kInfinity;
  const double gain = join_gain(trial, instance, i, j) + weight(instance, i, j) * proof.most(others, j);
  return gain - use * prices[j];
}

// Bound the node at `depth`, choose the agent to be placed next and list its choices; returns the bound.
double expand(const Plan& trial, const Instance& instance, Proof& proof, const Array1<double>& prices, Index depth) {
  const Index n = instance.n, m = instance.m, others = n - depth - 1;
  const double idle = instance.idle;
  double total = proof.placed + proof.charge, widest = -1.0, chosen_top = 0.0;
  Index chosen = depth;
  for (Index a = depth; a < n; ++a) {
    double top = idle, second = -kInfinity;
    const Index i = proof.order[a];
    for (Index j = 0; j < m; ++j) {
      const double own = bound_choice(trial, instance, proof, prices, i, j, others);
      if (own > top) {
        second = top;
        top = own;
      } else if (own > second) {
        second = own;
      }
    }
    total += top;
    if (top - second > widest) {
      widest = top - second;
      chosen = a;
      chosen_top = top;
    }
  }
  const Index i = proof.order[chosen];
  proof.order[chosen] = proof.order[depth];
  proof.order[depth] = i;
  Index first = 0;
  for (Index a = 0; a < depth; ++a) {
    if (proof.like[proof.order[a]] == proof.like[i]) {
      const Index last = trial.task[proof.order[a]];
      first = std::max(first, last >= 0 ? last : m);
    }
  }
  const Array1<double> keys = proof.bound.row(depth);
  const Array1<Index> choice = proof.choice.row(depth);
  Index count = 0;
  for (Index j = first; j <= m; ++j) {
    keys[j] = j == m ? idle : bound_choice(trial, instance, proof, prices, i, j, others);
    if (keys[j] > -kInfinity) choice[count++] = j;
  }
  rank(keys, proof.ties, choice, count);
  for (Index j = first; j <= m; ++j) keys[j] += total - chosen_top;
  proof.choices[depth] = count;
  proof.following[depth] = 0;
  return total;
}

// Place agent i, which has no task, on task j, or on none for j = m.
void place(Plan& trial, const Instance& instance, Proof& proof, const Array1<double>& prices, Index i, Index j) {
  if (j < instance.m) {
    proof.placed += join_gain(trial, instance, i, j);
    proof.charge -= instance.use(i, j) * prices[j];
    reassign(trial, instance, i, j);
  } else {
    proof.placed += instance.idle;
  }
}

// Undo `place`.
void take_back(Plan& trial, const Instance& instance, Proof& proof, const Array1<double>& prices, Index i) {
  const Index j = trial.task[i];
  if (j >= 0) {
    reassign(trial, instance, i, -1);
    proof.placed -= join_gain(trial, instance, i, j);
    proof.charge += instance.use(i, j) * prices[j];
  } else {
    proof.placed -= instance.idle;
  }
}

// Upper bound when the search is cut short: the best bound of a choice that was not explored.
double open_bound(const Proof& proof, Index depth, double best) {
  double limit = best;
  for (Index d = 0; d <= depth; ++d) {
    const Index turn = proof.following[d];
    if (turn < proof.choices[d]) limit = std::max(limit, proof.bound(d, proof.choice(d, turn)));
  }
  return limit;
}

}  // namespace

bool are_alike(const Instance& instance, Index i, Index other) {
  const double* const score = instance.score.row(i).data;
  const double* const use = instance.use.row(i).data;
  return std::equal(score, score + instance.m, instance.score.row(other).data) &&
         std::equal(use, use + instance.m, instance.use.row(other).data);
}

Proof make_proof(Arena& arena, Index n, Index m) {
  Proof proof;
  proof.order = arena.make1<Index>(n);
  proof.like = arena.make1<Index>(n);
  proof.choice = arena.make2<Index>(n, m + 1);
  proof.bound = arena.make2<double>(n, m + 1);
  proof.choices = arena.make1<Index>(n);
  proof.following = arena.make1<Index>(n);
  proof.ties = arena.zeros1<double>(m + 1);
  proof.most = arena.make2<double>(n, m);
  return proof;
}

double prove(Plan& plan, Plan& trial, const Instance& instance, Proof& proof, const Array1<double>& prices,
             double nodes, double scale, Stop& stop) {
  const Index n = instance.n, m = instance.m;
  clear(trial, instance);
  find_alike(proof, instance);
  double best = total_value(plan, instance);
  const double least = kGainTolerance * scale;
  proof.placed = 0.0;
  proof.charge = 0.0;
  for (Index j = 0; j < m; ++j) {
    if (prices[j] > 0.0) proof.charge += prices[j] * instance.capacity[j];
  }
  double looked = 1.0;
  Index depth = 0, placements = 0;
  expand(trial, instance, proof, prices, 0);
  while (depth >= 0) {
    const Index i = proof.order[depth], turn = proof.following[depth];
    if (turn > 0) take_back(trial, instance, proof, prices, i);
    const Index j = turn < proof.choices[depth] ? proof.choice(depth, turn) : -1;
    if (j < 0 || proof.bound(depth, j) <= best + least) {
      --depth;
      continue;
    }
    if (looked >= nodes || (placements++ % kNodesBetweenStops == 0 && stop.requested())) {
      return open_bound(proof, depth, best);
    }
    proof.following[depth] += 1;
    place(trial, instance, proof, prices, i, j);
    if (depth == n - 1) {
      const double value = total_value(trial, instance);
      if (value > best + least) {
        best = value;
        copy_plan(plan, trial, n, m);
      }
    } else {
      ++depth;
      looked += 1.0;
      if (expand(trial, instance, proof, prices, depth) <= best + least) proof.choices[depth] = 0;
    }
  }
  return best;
}

}  // namespace muster
