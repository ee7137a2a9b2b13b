// Private to workers: requests and answers over descriptor 3.
#pragma once

#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "tasks/worker/wire.h"

namespace graft::tasks::wire {

inline constexpr int socket_number = 3;

// A whole request and its file (-1 if none came). False when the parent is gone.
inline bool receive(Request& request, int& file) {
  file = -1;
  char* next = reinterpret_cast<char*>(&request);
  std::size_t missing = sizeof request;
  while (missing > 0) {
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
    iovec piece{next, missing};
    msghdr message{};
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    const ssize_t got = recvmsg(socket_number, &message, MSG_CMSG_CLOEXEC);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr; header = CMSG_NXTHDR(&message, header)) {
      if (header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS) {
        memcpy(&file, CMSG_DATA(header), sizeof file);
      }
    }
    next += got;
    missing -= std::size_t(got);
  }
  return true;
}

inline bool reply(const Answer& answer) {
  const char* next = reinterpret_cast<const char*>(&answer);
  std::size_t missing = sizeof answer;
  while (missing > 0) {
    const ssize_t sent = send(socket_number, next, missing, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    next += sent;
    missing -= std::size_t(sent);
  }
  return true;
}

}  // namespace graft::tasks::wire
