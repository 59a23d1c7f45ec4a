// Ranks as processes, started as a launcher would.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <map>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <polyrail/bootstrap.hpp>

#include "src/base/address.hpp"
#include "src/base/file_descriptor.hpp"
#include "src/bootstrap/socket.hpp"

namespace polyrail {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr const char* kKey = "a0a1a2a3a4a5a6a7a8a9aaabacadaeafb0b1b2b3b4b5b6b7b8b9babbbcbdbebf";
using Variables = std::map<std::string, std::string>;

// A child process with pipes to its standard input and from its standard output.
class Process {
 public:
  Process(std::vector<std::string> command, Variables variables) {
    variables["PATH"] = getenv("PATH");
    variables["POLYRAIL_LOG_LEVEL"] = "off";
    for (const auto& [name, value] : variables) environment_.push_back(name + "=" + value);
    int in[2];
    int out[2];
    EXPECT_EQ(pipe2(in, O_CLOEXEC), 0);
    EXPECT_EQ(pipe2(out, O_CLOEXEC), 0);
    input_ = FileDescriptor(in[1]);
    output_ = FileDescriptor(out[0]);
    const FileDescriptor child_in(in[0]);
    const FileDescriptor child_out(out[1]);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, child_in.get(), STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, child_out.get(), STDOUT_FILENO);
    std::vector<char*> argv = pointers(command);
    std::vector<char*> envp = pointers(environment_);
    EXPECT_EQ(posix_spawnp(&id_, argv[0], &actions, nullptr, argv.data(), envp.data()), 0);
    posix_spawn_file_actions_destroy(&actions);
  }
  Process(Process&& other) noexcept
      : id_(std::exchange(other.id_, -1)),
        input_(std::move(other.input_)),
        output_(std::move(other.output_)),
        said_(std::move(other.said_)) {}
  ~Process() {
    if (id_ > 0) kill();
  }

  pid_t id() const { return id_; }
  void end_input() { input_ = FileDescriptor(); }
  void kill() {
    ::kill(id_, SIGKILL);
    waitpid(std::exchange(id_, -1), nullptr, 0);
  }
  // Everything it says until it has said `text` or ended.
  const std::string& read_until(const std::string& text) {
    char bytes[4096];
    ssize_t count = 0;
    while (said_.find(text) == std::string::npos &&
           (count = read(output_.get(), bytes, sizeof(bytes))) > 0) {
      said_.append(bytes, count);
    }
    return said_;
  }
  // Everything it says to its end, and how it ended.
  std::string finish(int exit_code) {
    end_input();
    read_until("\n\n there is no such line \n\n");
    int status = 0;
    waitpid(std::exchange(id_, -1), &status, 0);
    EXPECT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), exit_code) << said_;
    return said_;
  }

 private:
  static std::vector<char*> pointers(std::vector<std::string>& texts) {
    std::vector<char*> result;
    for (std::string& text : texts) result.push_back(text.data());
    result.push_back(nullptr);
    return result;
  }

  std::vector<std::string> environment_;
  pid_t id_ = -1;
  FileDescriptor input_;
  FileDescriptor output_;
  std::string said_;
};

Variables torchrun(int rank, int rank_count, int port) {
  return {{"RANK", std::to_string(rank)},        {"WORLD_SIZE", std::to_string(rank_count)},
          {"LOCAL_RANK", std::to_string(rank)},  {"MASTER_ADDR", "localhost"},
          {"MASTER_PORT", std::to_string(port)}, {"POLYRAIL_KEY", kKey}};
}

int free_port() {
  const auto probe = bootstrap::bind_socket({parse_ip("127.0.0.1").value(), 0});
  return std::min<int>(probe.value().address.port, 65500);
}

std::string gathered(int rank_count, int round) {
  std::string line = "gathered";
  for (int rank = 0; rank < rank_count; ++rank) {
    line += " " + std::to_string(rank) + "." + std::to_string(round);
  }
  return line + "\n";
}

TEST(BootstrapProcesses, JoinAsTorchrunStartsThem) {
  const int port = free_port();
  std::vector<Process> ranks;
  for (int rank = 0; rank < 3; ++rank) {
    ranks.emplace_back(std::vector<std::string>{BOOTSTRAP_RANK, "2"}, torchrun(rank, 3, port));
  }
  for (Process& rank : ranks) {
    EXPECT_EQ(rank.finish(0), "joined\n" + gathered(3, 0) + gathered(3, 1));
  }
}

TEST(BootstrapProcesses, JoinThroughAnIdThatAnotherProcessMadeAndKeeps) {
  // This process keeps the ports of the id, as a launcher would; rank 0 listens there all the same.
  const auto id = make_unique_id(Options());
  ASSERT_TRUE(id.is_ok()) << id.status().message();
  std::vector<Process> ranks;
  for (int rank = 0; rank < 3; ++rank) {
    ranks.emplace_back(std::vector<std::string>{BOOTSTRAP_RANK, "1"},
                       Variables{{"RANK", std::to_string(rank)},
                                 {"WORLD_SIZE", "3"},
                                 {"POLYRAIL_UNIQUE_ID", id.value().to_text().value()}});
  }
  for (Process& rank : ranks) EXPECT_EQ(rank.finish(0), "joined\n" + gathered(3, 0));
}

TEST(BootstrapProcesses, NameTheOneThatWasKilled) {
  const int port = free_port();
  std::vector<Process> ranks;
  for (int rank = 0; rank < 4; ++rank) {
    ranks.emplace_back(std::vector<std::string>{BOOTSTRAP_RANK, "1", "wait"},
                       torchrun(rank, 4, port));
  }
  for (Process& rank : ranks) EXPECT_EQ(rank.read_until("joined\n"), "joined\n");
  const std::string killed = "rank 2 (host ";
  const std::string process = ", process " + std::to_string(ranks[2].id()) + ") was lost";
  // Rank 1 is already in the phase when rank 2 dies; the others come later.
  ranks[1].end_input();
  ranks[2].kill();
  for (int rank : {0, 1, 3}) {
    EXPECT_THAT(ranks[rank].finish(1), AllOf(HasSubstr("remote error: phase 'round 0': "),
                                             HasSubstr(killed), HasSubstr(process)));
  }
}

TEST(BootstrapProcesses, TellBothOfARankGivenTwice) {
  const int port = free_port();
  std::vector<Process> ranks;
  for (int rank : {0, 1, 1, 2}) {
    ranks.emplace_back(std::vector<std::string>{BOOTSTRAP_RANK, "1"}, torchrun(rank, 4, port));
  }
  const std::string first = "process " + std::to_string(ranks[1].id());
  const std::string second = "process " + std::to_string(ranks[2].id());
  for (Process& rank : ranks) {
    EXPECT_THAT(rank.finish(1),
                AllOf(HasSubstr("rank 1 was given twice"), HasSubstr(first), HasSubstr(second)));
  }
}

TEST(BootstrapProcesses, ShowHowToMakeAKey) {
  Variables variables = torchrun(0, 2, free_port());
  variables.erase("POLYRAIL_KEY");
  Process rank({BOOTSTRAP_RANK, "1"}, variables);
  EXPECT_THAT(rank.finish(1), HasSubstr("export POLYRAIL_KEY=$("));
}

TEST(BootstrapProcesses, JoinDespiteStrangersWhenRankZeroHasFewDescriptors) {
  const int port = free_port();
  Process root({"sh", "-c", std::string("ulimit -n 48 && exec ") + BOOTSTRAP_RANK + " 1"},
               torchrun(0, 3, port));
  std::vector<FileDescriptor> strangers;
  while (strangers.size() < 100) {
    for (int i = 0; i < 9; ++i) {
      const Address address{parse_ip("127.0.0.1").value(), static_cast<std::uint16_t>(port + i)};
      auto stranger = bootstrap::start_connecting(address);
      ASSERT_TRUE(stranger.is_ok()) << stranger.status().message();
      std::vector<pollfd> polled = {{stranger.value().get(), POLLOUT, 0}};
      bootstrap::poll_until(polled, bootstrap::Clock::now() + std::chrono::seconds(30));
      if (bootstrap::connect_result(stranger.value()).is_ok()) {
        strangers.push_back(std::move(stranger).value());
      }
    }
  }
  Process first({BOOTSTRAP_RANK, "1"}, torchrun(1, 3, port));
  Process second({BOOTSTRAP_RANK, "1"}, torchrun(2, 3, port));
  for (Process* rank : {&root, &first, &second}) {
    EXPECT_EQ(rank->finish(0), "joined\n" + gathered(3, 0));
  }
}

TEST(BootstrapProcesses, SayWhenThereAreTooFewDescriptorsForTheRanks) {
  Process root({"sh", "-c", std::string("ulimit -n 48 && exec ") + BOOTSTRAP_RANK + " 1"},
               torchrun(0, 100, free_port()));
  EXPECT_THAT(root.finish(1), AllOf(HasSubstr("rank 0 needs 115 more file descriptors"),
                                    HasSubstr("raise the hard limit (ulimit -Hn)")));
}

}  // namespace
}  // namespace polyrail
