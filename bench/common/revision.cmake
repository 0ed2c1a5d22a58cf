# cmake -DSOURCE=folder -DOUT=file -P revision.cmake: writes which revision is being built.
execute_process(COMMAND git -C ${SOURCE} describe --always --dirty --abbrev=12 --exclude *
  OUTPUT_VARIABLE revision OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(NOT revision)
  set(revision unknown)
endif()
file(CONFIGURE OUTPUT ${OUT} CONTENT [[
// Made by bench/common/revision.cmake.
#pragma once

namespace curtail::bench {

inline constexpr char kRevision[] = "@revision@";

}  // namespace curtail::bench
]] @ONLY)
