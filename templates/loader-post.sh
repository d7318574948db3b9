# The libraries are where the packages were moved to. What an administrator wrote stays.
prefix="${RPM_INSTALL_PREFIX:-{{ prefix }}}"
file={{ file }}
if [ "$prefix" != {{ prefix }} ] && [ -f "$file" ]; then
  read -r line <"$file" || :
  if [ "$line" = {{ prefix }}/{{ libdir }} ]; then
    echo "$prefix/{{ libdir }}" >"$file"
  fi
fi
