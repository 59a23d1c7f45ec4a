// A small reader for the XML of topology files: elements and attributes, with line numbers.
//
// Text between elements, comments, processing instructions and the document type are skipped;
// entities other than the five predefined ones and character references are errors, so nothing
// expands. Hostile input costs at most a bounded multiple of its size.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <polyrail/status.hpp>

namespace polyrail::topo {

struct XmlElement {
  int line = 0;
  std::string_view name;  // points into the text that was parsed
  std::vector<std::pair<std::string_view, std::string>> attributes;
  std::vector<XmlElement> children;

  // The value of an attribute, "" if it is not there.
  std::string_view attribute(std::string_view attribute_name) const;
};

// The root element. An error begins with "line N: ". The text must outlive the result.
Result<XmlElement> parse_xml(std::string_view text);

}  // namespace polyrail::topo
