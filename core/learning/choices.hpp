// The likelihood of the choices that agents made, with the noise of the decision itself integrated out.
//
// Were that noise Gumbel of scale tau, an agent alone would take task j with probability softmax(u / tau) over
//
//   u_j = h_ij + history_ij + g_jj + sum over the other agents' tasks l of (g_jl + g_lj)
//
// among the tasks with capacity left beside the others'. Idling, where that is allowed, is worth 0 and has no noise: it is
// chosen with probability exp(-lambda), log lambda = log sum exp(u / tau) - gamma, which is that the largest of the u with
// noise of mean 0 is below 0. Agents also compete for capacity: an agent may have exchanged tasks with any other, which
// changes h alone:
//
//   u = u_own + (h_i,o(k) + h_k,o(i) - h_i,o(i) - h_k,o(k)) / sqrt(2)       (h with its history; 0 for no task)
//
// since the noise of an exchange has twice the variance of a move's. The product over agents, each given what the others
// took, is the pseudo-likelihood of an assignment.
#pragma once

#include <cstdint>

#include "array.hpp"

namespace muster {

// S assignments and the constraints and noise that they were chosen under.
struct Decisions {
  Array2<const std::int64_t> assignment;  // [S, N], -1 for none
  Array3<const float> history;            // [S, N, M] noise of earlier decisions on h
  Array3<const double> contributions;     // [S, N, M]
  Array2<const double> capacities;        // [S, M]
  Array2<const bool> agent_alive;         // [S, N]
  Array3<const bool> open;                // [S, N, M] living tasks that the agent may take
  bool idling;                            // whether an agent could have chosen no task although some had capacity left
  bool exchanging;                        // whether exchanges are among the options
  Array2<const double> minimums;          // [S, M] load that a task gets at least, or none; no rows where there are none
};

// Scores h [S, N, M], g [S, M, M] (or empty), and the temperature.
struct ChoiceScores {
  Array3<const float> h;
  Array3<const float> g;
  double tau;
};

// Log-likelihood [S, N] of each agent's choice; 0 for one that had none to make.
void fill_likelihood(const Decisions& decisions, const ChoiceScores& scores, Array2<double> likelihood);

// Share of the living agents that had a choice of their own, given the others' tasks.
double share_with_moves(const Decisions& decisions);

// The clipped loss of proximal policy optimisation:
//
//   L = -mean over the living agents of min(ratio A, clamp(ratio, 1 - clip, 1 + clip) A) - entropy H
//
// where ratio is the likelihood of an agent's choice now by that when it was made, A the advantage of its state and H
// the mean entropy of the options of those that had a choice. A clip of 0 clamps nothing.
struct ClippedLoss {
  Array2<const double> before;     // [S, N] log-likelihoods when the choices were made
  Array1<const double> advantage;  // [S]
  double clip;
  double entropy;
};

struct LossAndEntropy {
  double loss;
  double entropy;
};

// The loss; slope_h [S, N, M] and slope_g [S, M, M] become `weight` times its slopes in h and g.
LossAndEntropy fill_slopes(const Decisions& decisions, const ChoiceScores& scores, const ClippedLoss& loss,
                           double weight, Array3<float> slope_h, Array3<float> slope_g);

}  // namespace muster
