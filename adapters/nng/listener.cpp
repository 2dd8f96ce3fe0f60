// SPDX-License-Identifier: Apache-2.0
#include "listener.hpp"

#include <sched.h>

#include <utility>

namespace lagometer::nng {

Listener::Listener(nng_socket socket, lagometer_data_function on_data, void* user)
    : socket_(socket), on_data_(on_data), user_(user) {
  if (const int error = nng_aio_alloc(&aio_, &Listener::on_end, this); error != 0)
    throw_nng_error(error, "making an asynchronous receive");
}

Listener::~Listener() {
  nng_aio_stop(aio_);
  nng_aio_free(aio_);
}

void Listener::end() noexcept {
  const Noticed now{.at_ns = now_ns(), .cpu = static_cast<uint32_t>(sched_getcpu())};
  if (nng_aio_result(aio_) != 0) return;  // it was stopped
  message_.reset(nng_aio_get_msg(aio_));
  nng_aio_set_msg(aio_, nullptr);
  noticed_ = now;
  holders_.store(2, std::memory_order_relaxed);
  lies_here_.store(true, std::memory_order_release);
  on_data_(user_);
  let_go();
}

Message Listener::take(Noticed& noticed) noexcept {
  if (!lies_here_.exchange(false, std::memory_order_acquire)) return nullptr;
  Message message = std::move(message_);
  noticed = noticed_;
  let_go();
  return message;
}

/// Nothing of this object may be touched afterwards: the next call may already be running, on another thread.
void Listener::let_go() noexcept {
  if (holders_.fetch_sub(1, std::memory_order_acq_rel) == 1) receive_next();
}

}  // namespace lagometer::nng
