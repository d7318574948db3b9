
-- No package owns the folders above the prefix, because a relocated prefix has others. The empty ones
-- are removed, as dpkg does.
if prefix == {{ prefix }} then
{% for folder in folders %}
  posix.rmdir({{ folder }})
{% endfor %}
end
