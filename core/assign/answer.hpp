// Answers of a batch: write one, read it back to go on from it, put a better one in its place.
#pragma once

#include "../stop.hpp"
#include "certificate.hpp"

namespace muster {

// Write the plan of an instance and its certificate to row b, by the numbers of the input.
void write_answer(const Output& out, Index b, const Plan& plan, const Instance& instance, const Array1<double>& prices,
                  const Certificate& certificate);

// Write the assignment in row b to `found`, m for left out; its value with the penalty for those left out.
// `position` [M] is scratch.
double read_answer(const Array1<Index>& found, const Instance& instance, const Output& out, Index b,
                   const Array1<Index>& position);

// Whether some agent has no task although it would fit one alone.
bool leaves_out(const Plan& plan, const Instance& instance);

// Replace the answer in row b by the assignment `found`, certified by the upper bound `limit`.
// `plan` and `ranking` are scratch.
void write_improved(const Array1<Index>& found, double limit, const Instance& instance, const Settings& settings,
                    const Output& out, Index b, Plan& plan, const Array1<double>& prices, Ranking& ranking, Stop& stop);

}  // namespace muster
