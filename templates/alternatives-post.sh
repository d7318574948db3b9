prefix="${RPM_INSTALL_PREFIX:-{{ prefix }}}"
{% for program in programs %}
/usr/sbin/update-alternatives --install /usr/bin/{{ program }} {{ program }} "$prefix/bin/{{ program }}" {{ priority }}
{% endfor %}
