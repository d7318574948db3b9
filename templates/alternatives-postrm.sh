# On upgrade, what the next version has not at its place is no alternative any more. Files that it
# has are in place, and of those that they replaced there are dpkg's backups; other files of this
# version are removed after this script (Debian policy 6.6).
case "$1" in
  upgrade)
{% for program in programs %}
    program="{{ prefix }}/bin/{{ program }}"
    if [ ! -e "${DPKG_ROOT:-}$program.dpkg-tmp" ] && [ ! -L "${DPKG_ROOT:-}$program.dpkg-tmp" ]; then
      update-alternatives --remove {{ program }} "$program"
    fi
{% endfor %}
    ;;
esac
