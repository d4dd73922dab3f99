# What the HTML report has inline, from files of src/report: page_css, curve_css and page_js, each with NAME_hash, by which the
# page's content policy names it ("sha256-" and the digest in base64).

set(base64 "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
foreach(file IN ITEMS page.css curve.css page.js)
  set(path ${PROJECT_SOURCE_DIR}/src/report/${file})
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${path})
  string(REPLACE "." "_" name ${file})
  file(READ ${path} ${name})
  file(SHA256 ${path} digest)
  string(APPEND digest "00")  # 66 digits, three of which are two of base64's; of its 44, the last is written as "="
  set(${name}_hash "sha256-")
  foreach(at RANGE 0 63 3)
    string(SUBSTRING ${digest} ${at} 3 digits)
    math(EXPR first "0x${digits} >> 6")
    math(EXPR second "0x${digits} & 63")
    foreach(index IN ITEMS ${first} ${second})
      string(SUBSTRING ${base64} ${index} 1 character)
      string(APPEND ${name}_hash ${character})
    endforeach()
  endforeach()
  string(REGEX REPLACE "A$" "=" ${name}_hash ${${name}_hash})
endforeach()
configure_file(${PROJECT_SOURCE_DIR}/src/report/page_texts.cpp.in ${PROJECT_BINARY_DIR}/generated/report/page_texts.cpp @ONLY)
