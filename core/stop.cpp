#include "stop.hpp"

#include <Python.h>

#include <thread>

namespace muster {

namespace {

constexpr auto kBetweenSignals = std::chrono::milliseconds(5);

// Modules are imported by the main thread in all but contrived programs; elsewhere Python handles no signals anyway.
const std::thread::id main_thread = std::this_thread::get_id();

// Let Python handle signals that came meanwhile; whether one of them, such as Ctrl-C, raised an exception. It stays set,
// for the caller to find after the computation.
bool signal_raised() {
  const PyGILState_STATE state = PyGILState_Ensure();
  const bool raised = PyErr_CheckSignals() != 0;
  PyGILState_Release(state);
  return raised;
}

}  // namespace

Stop::Stop(std::int64_t* flag, double seconds)
    : flag_(flag), deadline_(Clock::time_point::max()), main_thread_(std::this_thread::get_id() == main_thread) {
  const Clock::time_point now = Clock::now();
  next_signals_ = now + kBetweenSignals;
  // Beyond some years the clock's range would overflow.
  if (seconds < 1e8) deadline_ = now + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

bool Stop::look() {
  if (stopped_) return true;
  const Clock::time_point now = Clock::now();
  stopped_ = now >= deadline_;
  if (!stopped_ && main_thread_ && now >= next_signals_) {
    next_signals_ = now + kBetweenSignals;
    stopped_ = signal_raised();
  }
  if (stopped_) raise();
  return stopped_;
}

}  // namespace muster
