// When a long computation has to end early: a time limit, a flag that another thread raises, or Ctrl-C.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <limits>

namespace muster {

class Stop {
 public:
  using Clock = std::chrono::steady_clock;

  // `flag`: one number of a numpy array, not 0 to stop; null for none. `seconds`: from now on; infinite for no limit.
  explicit Stop(std::int64_t* flag, double seconds = std::numeric_limits<double>::infinity());

  // Whether to stop. Cheap enough for every few microseconds of work; to be called at least every 5 ms.
  bool requested() {
    if (flag_ != nullptr && std::atomic_ref(*flag_).load(std::memory_order_relaxed) != 0) return true;
    return look();
  }

  // Raise the flag: the computation and those that share the flag stop.
  void raise() {
    if (flag_ != nullptr) std::atomic_ref(*flag_).store(1, std::memory_order_relaxed);
  }

 private:
  bool look();

  std::int64_t* flag_;
  Clock::time_point deadline_;
  Clock::time_point next_signals_;
  bool main_thread_;
  bool stopped_ = false;
};

}  // namespace muster
