#!/bin/sh
set -e
# A symbolic link in the prefix would put these files elsewhere, possibly over files of another
# vendor. System folders may be links, such as /opt on an image-based system.
root="${DPKG_ROOT:-}"
path="$root{{ prefix }}"
while [ "$path" != "$root" ]; do
{% if system %}
  case "${path#"$root"}" in
    {{ system }}) break ;;
  esac
{% endif %}
  if [ -L "$path" ]; then
    echo "{{ package }}: $path is a symbolic link, but the prefix has to be a real directory" >&2
    exit 1
  fi
  path="${path%/*}"
done
