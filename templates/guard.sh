{% if shebang %}
#!/bin/sh
set -e
{% endif %}
# A link on the way to the prefix would lead these files into another place, possibly over those
# of another vendor.
root={{ root }}
path={{ path }}
while [ "$path" != "$root" ]; do
  if [ -L "$path" ]; then
    echo "{{ package }}: $path is a symbolic link, but the prefix has to be a real directory" >&2
    exit 1
  fi
  path="${path%/*}"
done
