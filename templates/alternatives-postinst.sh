case "$1" in
  configure | abort-upgrade | abort-remove | abort-deconfigure)
{% for program in programs %}
    update-alternatives --install /usr/bin/{{ program }} {{ program }} {{ prefix }}/bin/{{ program }} {{ priority }}
{% endfor %}
    ;;
esac
