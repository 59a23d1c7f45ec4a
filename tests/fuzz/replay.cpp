// Runs a fuzz target over its seeds and over mutations of them, without libFuzzer, so that ctest
// exercises it with every compiler and sanitizer.
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

std::vector<std::string> seeds() {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(FUZZ_CORPUS)) {
    paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> texts;
  for (const auto& path : paths) {
    std::ifstream file(path, std::ios::binary);
    texts.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return texts;
}

void run(const std::string& input) {
  // A copy of the exact size, so that AddressSanitizer sees a read past its end.
  const std::vector<std::uint8_t> bytes(input.begin(), input.end());
  LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
}

// Changes a few places: a byte, a piece left out, a piece doubled, a piece of another seed.
std::string mutated(std::string text, const std::vector<std::string>& others,
                    std::mt19937& random) {
  const auto below = [&](std::size_t bound) { return bound == 0 ? 0 : random() % bound; };
  for (std::size_t changes = 1 + below(4); changes > 0; --changes) {
    const std::size_t at = below(text.size() + 1);
    switch (below(5)) {
      case 0:
        if (at < text.size()) text[at] = static_cast<char>(random());
        break;
      case 1:
        if (at < text.size()) text[at] = "0129-*:[]{}\"\\ \n#"[below(16)];
        break;
      case 2:
        text.erase(at, below(16));
        break;
      case 3:
        text.insert(at, text.substr(below(text.size() + 1), below(64)));
        break;
      default: {
        const std::string& other = others[below(others.size())];
        text.insert(at, other.substr(below(other.size() + 1), below(64)));
      }
    }
  }
  return text;
}

TEST(FuzzReplay, SeedsAndTheirMutationsDoNoHarm) {
  const std::vector<std::string> texts = seeds();
  ASSERT_FALSE(texts.empty()) << "no seeds in " << FUZZ_CORPUS;
  run("");
  for (const std::string& text : texts) run(text);

  const char* from_environment = std::getenv("FUZZ_SEED");
  const auto seed =
      static_cast<std::uint32_t>(from_environment != nullptr ? std::atoll(from_environment) : 1);
  std::cout << FUZZ_NAME << ": FUZZ_SEED=" << seed << std::endl;
  std::mt19937 random(seed);
  for (int round = 0; round < 5000; ++round) {
    run(mutated(texts[random() % texts.size()], texts, random));
  }
}

}  // namespace
