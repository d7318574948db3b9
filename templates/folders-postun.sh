# No package owns the folders above the prefix, because a relocated prefix has others. The empty ones
# are removed, as dpkg does.
if [ "${RPM_INSTALL_PREFIX:-{{ prefix }}}" = '{{ prefix }}' ]; then
{% for folder in folders %}
  [ ! -d '{{ folder }}' ] || rmdir --ignore-fail-on-non-empty '{{ folder }}'
{% endfor %}
fi
