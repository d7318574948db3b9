# On upgrade, removes the alternatives of programs that the next version does not have. dpkg keeps
# backups of the files that the next version replaces, and removes other files of this version only
# after this script (Debian policy 6.6).
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
