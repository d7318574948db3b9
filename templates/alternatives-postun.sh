# After an upgrade the new version's programs are there, and the alternative that somebody chose
# stays chosen; what the new version has no more goes.
prefix="${RPM_INSTALL_PREFIX:-{{ prefix }}}"
{% for program in programs %}
[ -e "$prefix/bin/{{ program }}" ] || /usr/sbin/update-alternatives --remove {{ program }} "$prefix/bin/{{ program }}"
{% endfor %}
