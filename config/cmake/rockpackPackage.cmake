# Packages the install components of a project. Targets of rockpack_add_packages run this script, with the
# variables in lower case; as CPACK_EXTERNAL_PACKAGE_SCRIPT it takes what CPack has installed.
cmake_policy(VERSION 3.20)

if(CPACK_EXTERNAL_PACKAGE_SCRIPT)
  set(program "${CPACK_ROCKPACK_EXECUTABLE}")
  set(name "${CPACK_PACKAGE_NAME}")
  set(version "${CPACK_PACKAGE_VERSION}")
  set(options "${CPACK_ROCKPACK_OPTIONS}")
  set(components "${CPACK_COMPONENTS_ALL}")
  set(prefix "${CPACK_PACKAGING_INSTALL_PREFIX}")
  if(CPACK_SET_DESTDIR)
    set(prefix "${CPACK_INSTALL_PREFIX}")
  endif()
  if(CPACK_MONOLITHIC_INSTALL OR NOT components)
    # CPack's folder itself is the only component.
    set(components /)
  endif()
  set(stage "${CPACK_TOPLEVEL_DIRECTORY}/rockpack")
  set(out "${stage}/packages")
elseif(config)
  set(config --config "${config}")
endif()
string(TOLOWER "${name}" name)
string(REGEX REPLACE "[^a-z0-9.+]+" "-" name "${name}")
string(REGEX REPLACE "/+$" "" prefix "${prefix}")

# Sets `out` to the NAME of a component's input, or NAME_KIND, or to NAME-COMPONENT, a family of its own.
function(name_input component out)
  string(TOLOWER "${component}" text)
  string(REGEX REPLACE "[^a-z0-9.+]+" "-" text "-${text}")
  string(REPLACE "^-${name}-" "^-" text "^${text}-")
  string(REGEX REPLACE "^.(.*)-$" "\\1" text "${text}")
  # The names in ROCm's modules for CMake and CPack's documentation, and their kin.
  string(REGEX REPLACE "-(runtime|libraries|unspecified)?$" "" text "${text}")
  string(REGEX REPLACE "-(devel|dev|development|headers)$" "_dev" text "${text}")
  string(REGEX REPLACE "-(docs?|documentation)$" "_doc" text "${text}")
  string(REGEX REPLACE "-(tests?|benchmarks?|samples?|clients|clients-common)$" "_test" text "${text}")
  string(REGEX REPLACE "-(debug|debuginfo|dbg|dbgsym)$" "_dbg" text "${text}")
  set(${out} "${name}${text}" PARENT_SCOPE)
endfunction()

# Installs each input below a folder of its own.
file(REMOVE_RECURSE "${stage}")
set(inputs)
foreach(component IN LISTS components)
  name_input("${component}" input)
  list(APPEND inputs "${input}")
  if(NOT CPACK_EXTERNAL_PACKAGE_SCRIPT)
    set(ENV{DESTDIR} "${stage}/root/${input}")
    execute_process(COMMAND "${CMAKE_COMMAND}" --install "${build}" ${config} --component "${component}"
      OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
  elseif(EXISTS "${CPACK_TEMPORARY_DIRECTORY}/${component}")
    file(COPY "${CPACK_TEMPORARY_DIRECTORY}/${component}/" DESTINATION "${stage}/root/${input}")
  endif()
endforeach()
list(REMOVE_DUPLICATES inputs)

# The folders have the name of the project, which becomes that of the shard. A manifest says that the install prefix
# is `stage`, whatever lies in it.
set(trees)
foreach(input IN LISTS inputs)
  file(GLOB_RECURSE files LIST_DIRECTORIES true "${stage}/root/${input}${prefix}/*")
  if(files)
    set(tree "${stage}/${input}/${name}")
    file(WRITE "${tree}/artifact_manifest.txt" "stage\n")
    file(RENAME "${stage}/root/${input}${prefix}" "${tree}/stage")
    list(APPEND trees "${input}=${tree}")
  endif()
endforeach()
if(NOT trees)
  message(FATAL_ERROR "The project installs nothing below `${prefix}`. Its install components: ${components}")
endif()
file(GLOB_RECURSE outside RELATIVE "${stage}/root" "${stage}/root/*")
if(outside)
  list(JOIN outside "\n  " outside)
  message(WARNING "Files outside of the install prefix ${prefix} are in no package; give install() a DESTINATION "
    "relative to it:\n  ${outside}")
endif()

execute_process(COMMAND "${program}" build ${trees} --version "${version}" --out "${out}" ${options}
  COMMAND_ERROR_IS_FATAL ANY)
file(GLOB CPACK_EXTERNAL_BUILT_PACKAGES "${out}/*")
