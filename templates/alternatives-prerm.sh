# Not on upgrade, which keeps the administrator's choice.
case "$1" in
  remove | deconfigure)
{% for program in programs %}
    update-alternatives --remove {{ program }} {{ prefix }}/bin/{{ program }}
{% endfor %}
    ;;
esac
