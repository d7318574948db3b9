#!/bin/sh
set -e
# A link in the prefix would lead these files into another place, possibly over those of another
# vendor. Folders of the system may be links, such as /opt on a system that is an image.
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
