# What find_package(rockpack) finds: the program, and a function that packages a project (docs/guides/cmake.md).
#
#   ROCKPACK_EXECUTABLE    cache variable: the program
#   ROCKPACK_CPACK_SCRIPT  the value for CPACK_EXTERNAL_PACKAGE_SCRIPT
#   rockpack_add_packages(TARGET [NAME name] [VERSION version] [OUT folder]
#                         [COMPONENTS component...] [OPTIONS option...])
cmake_policy(VERSION 3.20)

find_program(ROCKPACK_EXECUTABLE rockpack HINTS "${CMAKE_CURRENT_LIST_DIR}/../../../bin"
  DOC "The program rockpack" NO_CMAKE_FIND_ROOT_PATH)
execute_process(COMMAND "${ROCKPACK_EXECUTABLE}" --version OUTPUT_VARIABLE _rockpack_text ERROR_QUIET)
string(REGEX MATCH "^rockpack ([0-9.]+)" _rockpack_text "${_rockpack_text}")
if(NOT _rockpack_text OR CMAKE_MATCH_1 VERSION_LESS "${rockpack_VERSION}")
  set(rockpack_FOUND FALSE)
  set(rockpack_NOT_FOUND_MESSAGE "The program rockpack ${rockpack_VERSION} or newer is needed, and \
ROCKPACK_EXECUTABLE is ${ROCKPACK_EXECUTABLE} (${_rockpack_text}). Install the package rockpack, or set the variable.")
  return()
endif()
set(ROCKPACK_CPACK_SCRIPT "${CMAKE_CURRENT_LIST_DIR}/rockpackPackage.cmake")
# The script gets only variables of CPack.
set(CPACK_ROCKPACK_EXECUTABLE "${ROCKPACK_EXECUTABLE}")

# Adds a target that builds the project, installs it below the build folder, and packages what it installed.
function(rockpack_add_packages target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "NAME;VERSION;OUT" "COMPONENTS;OPTIONS")
  if(arg_UNPARSED_ARGUMENTS OR arg_KEYWORDS_MISSING_VALUES)
    message(FATAL_ERROR "rockpack_add_packages(${target}): unknown, or without a value: "
      "${arg_UNPARSED_ARGUMENTS} ${arg_KEYWORDS_MISSING_VALUES}")
  endif()
  foreach(word NAME VERSION)
    if(NOT arg_${word})
      set(arg_${word} "${PROJECT_${word}}")
    endif()
  endforeach()
  if(NOT arg_VERSION)
    message(FATAL_ERROR "rockpack_add_packages(${target}): no version; give VERSION here or to project().")
  endif()
  if(NOT arg_OUT)
    set(arg_OUT "${target}")
  endif()
  get_filename_component(out "${arg_OUT}" ABSOLUTE BASE_DIR "${CMAKE_CURRENT_BINARY_DIR}")
  add_custom_target("${target}" VERBATIM USES_TERMINAL COMMENT "Packaging ${arg_NAME} ${arg_VERSION}"
    WORKING_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}"
    COMMAND "${CMAKE_COMMAND}" "-Dprogram=${ROCKPACK_EXECUTABLE}" "-Dname=${arg_NAME}"
      "-Dversion=${arg_VERSION}" "-Dcomponents=$<TARGET_PROPERTY:${target},ROCKPACK_COMPONENTS>"
      "-Dbuild=${PROJECT_BINARY_DIR}" "-Dconfig=$<CONFIG>" "-Dprefix=${CMAKE_INSTALL_PREFIX}"
      "-Dstage=${CMAKE_CURRENT_BINARY_DIR}/${target}.stage" "-Dout=${out}" "-Doptions=${arg_OPTIONS}"
      -P "${ROCKPACK_CPACK_SCRIPT}")
  set_target_properties("${target}" PROPERTIES ROCKPACK_COMPONENTS "${arg_COMPONENTS}")
  # All targets and components are known at the end.
  cmake_language(EVAL CODE "cmake_language(DEFER DIRECTORY [==[${CMAKE_SOURCE_DIR}]==]
    CALL _rockpack_complete [==[${target}]==] [==[${PROJECT_SOURCE_DIR}]==])")
endfunction()

function(_rockpack_complete target folder)
  get_cmake_property(all COMPONENTS)
  get_target_property(chosen "${target}" ROCKPACK_COMPONENTS)
  if(NOT chosen)
    set_target_properties("${target}" PROPERTIES ROCKPACK_COMPONENTS "${all}")
  endif()
  foreach(component IN LISTS chosen)
    if(NOT component IN_LIST all)
      message(FATAL_ERROR "rockpack_add_packages(${target}): no component ${component} is installed, only ${all}")
    endif()
  endforeach()
  _rockpack_depend("${target}" "${folder}")
endfunction()

# Makes the target depend on all targets of a folder and those below that are built by default.
function(_rockpack_depend target folder)
  get_property(others DIRECTORY "${folder}" PROPERTY BUILDSYSTEM_TARGETS)
  foreach(other IN LISTS others)
    get_target_property(is_excluded "${other}" EXCLUDE_FROM_ALL)
    if(NOT is_excluded)
      add_dependencies("${target}" "${other}")
    endif()
  endforeach()
  get_property(subfolders DIRECTORY "${folder}" PROPERTY SUBDIRECTORIES)
  foreach(subfolder IN LISTS subfolders)
    get_property(is_excluded DIRECTORY "${subfolder}" PROPERTY EXCLUDE_FROM_ALL)
    if(NOT is_excluded)
      _rockpack_depend("${target}" "${subfolder}")
    endif()
  endforeach()
endfunction()
