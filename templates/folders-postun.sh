# Folders above the prefix belong to no package, because a moved prefix has others above it. Empty
# ones go, as they do with dpkg.
if [ "${RPM_INSTALL_PREFIX:-{{ prefix }}}" = '{{ prefix }}' ]; then
{% for folder in folders %}
  [ ! -d '{{ folder }}' ] || rmdir --ignore-fail-on-non-empty '{{ folder }}'
{% endfor %}
fi
