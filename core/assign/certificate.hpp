// The certificate of an answer: prices, the bound that they prove, and the reason why an agent has no task.
#pragma once

#include "lp/relaxation.hpp"
#include "plan.hpp"

namespace muster {

// Value of the relaxed solution, the two gaps, and an upper bound on every assignment; NaN where unknown.
struct Certificate {
  double relaxed = 0.0;
  double duality_gap = 0.0;
  double frank_wolfe_gap = 0.0;
  double bound = 0.0;
};

// Value of the relaxation's vertex under its profits.
double primal_value(const Relaxation& relaxation, const Instance& instance, const Array1<double>& bonus);

// Set the prices of the tasks; returns their dual value, a bound on every relaxed assignment under the profits.
double set_prices(const Relaxation& relaxation, const Instance& instance, const Array1<double>& bonus,
                  const Array1<double>& prices);

// The dual bound of prices: sum_j u_j pi_j + sum_i max(idle, max_j w_ij - mu_ij pi_j).
double price_bound(const Instance& instance, const Array1<double>& bonus, const Array1<double>& prices);

// Note the bound that follows from `limit`; whether it proves the plan to be optimal.
//
// No assignment is worth more than `limit` with the penalty for agents left out, nor is the plan, with its own `value`.
// Where all agents have to be assigned, this bounds the assignments that leave no agent out; where one is left out, it bounds
// nothing unless it is reached.
bool settle_bound(Certificate& certificate, const Plan& plan, const Instance& instance, double value, double limit);

// Why agent i has no task.
Reason reason_of(const Plan& plan, const Instance& instance, Index i);

}  // namespace muster
