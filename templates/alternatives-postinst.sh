#!/bin/sh
set -e
case "$1" in
  configure | abort-upgrade | abort-remove | abort-deconfigure)
    # What an earlier version had and this one has not. A program of another package that is not
    # there either is no loss.
    update-alternatives --get-selections | while read -r name _ path; do
      case "$path" in
        {{ prefix }}/bin/*)
          if [ ! -e "${DPKG_ROOT:-}$path" ]; then
            update-alternatives --remove "$name" "$path"
          fi
          ;;
      esac
    done
{% for program in programs %}
    update-alternatives --install /usr/bin/{{ program }} {{ program }} {{ prefix }}/bin/{{ program }} {{ priority }}
{% endfor %}
    ;;
esac
