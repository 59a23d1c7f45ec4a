#include "src/base/memory_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace polyrail {
namespace {

Status system_error(const std::string& attempt, int code) {
  return {StatusCode::kSystemError, attempt + ": " + std::strerror(code)};
}

}  // namespace

std::size_t page_bytes() {
  return static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

std::size_t round_up_to_page(std::size_t bytes) {
  return (bytes + page_bytes() - 1) / page_bytes() * page_bytes();
}

Mapping::~Mapping() {
  if (base_ != nullptr) ::munmap(base_, bytes_);
}

Result<FileDescriptor> make_memory_file(const std::string& label, std::size_t bytes) {
  FileDescriptor file(::memfd_create(label.c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file.is_open()) return system_error("create memory file '" + label + "'", errno);
  if (::ftruncate(file.get(), static_cast<off_t>(bytes)) != 0) {
    return system_error("size memory file '" + label + "' to " + std::to_string(bytes) + " bytes",
                        errno);
  }
  if (::fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    return system_error("seal memory file '" + label + "'", errno);
  }
  return file;
}

Status reserve_pages(const FileDescriptor& file, std::size_t offset_bytes, std::size_t bytes) {
  int outcome;
  do {
    outcome =
        ::fallocate(file.get(), 0, static_cast<off_t>(offset_bytes), static_cast<off_t>(bytes));
  } while (outcome != 0 && errno == EINTR);
  if (outcome == 0) return ok();
  return system_error("reserve " + std::to_string(bytes) + " bytes of shared memory", errno);
}

Result<Mapping> map_file(const FileDescriptor& file, std::size_t offset_bytes, std::size_t bytes) {
  void* base = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(),
                      static_cast<off_t>(offset_bytes));
  if (base == MAP_FAILED) {
    return system_error("map " + std::to_string(bytes) + " bytes of shared memory", errno);
  }
  return Mapping(static_cast<std::byte*>(base), bytes);
}

Result<FileDescriptor> open_descriptor_of(int pid, int descriptor, int flags) {
  const std::string path = "/proc/" + std::to_string(pid) + "/fd/" + std::to_string(descriptor);
  FileDescriptor file(::open(path.c_str(), flags | O_CLOEXEC));
  if (!file.is_open()) return system_error("open " + path, errno);
  return file;
}

Result<std::size_t> sealed_size_bytes(const FileDescriptor& file) {
  const int seals = ::fcntl(file.get(), F_GET_SEALS);
  if (seals < 0) return system_error("read the seals of a memory file", errno);
  if ((seals & F_SEAL_SHRINK) == 0) {
    return Status(StatusCode::kSystemError, "a memory file of a peer is not sealed");
  }
  struct stat state {};
  if (::fstat(file.get(), &state) != 0) return system_error("read the size of a file", errno);
  return static_cast<std::size_t>(state.st_size);
}

}  // namespace polyrail
