# Removes the alternatives of programs that the new version does not have. After an upgrade, the
# others keep the administrator's choice.
prefix="${RPM_INSTALL_PREFIX:-{{ prefix }}}"
{% for program in programs %}
[ -e "$prefix/bin/{{ program }}" ] || /usr/sbin/update-alternatives --remove {{ program }} "$prefix/bin/{{ program }}"
{% endfor %}
