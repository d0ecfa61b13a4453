#include "stop.hpp"

#include <Python.h>

#include <thread>

#ifdef __linux__
#include <ctime>
#endif

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

// The time to within a few milliseconds, several times quicker than Clock::now().
Stop::Clock::time_point now_roughly() {
#ifdef __linux__
  timespec time;
  clock_gettime(CLOCK_MONOTONIC_COARSE, &time);
  return Stop::Clock::time_point(std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec));
#else
  return Stop::Clock::now();
#endif
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
  if (deadline_ != Clock::time_point::max()) stopped_ = Clock::now() >= deadline_;
  if (!stopped_ && main_thread_) {
    const Clock::time_point now = now_roughly();
    if (now >= next_signals_) {
      next_signals_ = now + kBetweenSignals;
      stopped_ = signal_raised();
    }
  }
  if (stopped_) raise();
  return stopped_;
}

}  // namespace muster
