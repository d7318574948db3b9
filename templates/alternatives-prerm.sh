# Not on upgrade: the alternative that somebody chose stays chosen.
case "$1" in
  remove | deconfigure)
{% for program in programs %}
    update-alternatives --remove {{ program }} {{ prefix }}/bin/{{ program }}
{% endfor %}
    ;;
esac
